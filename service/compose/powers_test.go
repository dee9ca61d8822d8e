package compose

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Nothing that an agent wrote is started by the clock or an event, and nothing changes the user's memory unasked behind a daemon,
// before a person trusts it, whatever else it does.
func TestWhatADaemonStartsUnaskedWantsTrust(t *testing.T) {
	const harmless, command, agent = "a: {set: {n: 1}}", `a: {run: "true"}`, `a: {prompt: p, model: script/replies.yaml, memory: {scope: %s}, tools: [{%s}]}`
	const clock, event = `on: {schedule: "@daily"}`, `on: {webhook: {kind: github, secret: HOOK}}`
	type may struct{ serve, clock, event bool }
	for _, x := range []struct {
		name, on, roles string
		want            may
	}{
		{"nothing", "", harmless, may{true, true, true}},
		{"a schedule", clock, harmless, may{true, false, true}},
		{"a webhook", event, harmless, may{true, true, false}},
		{"a command", "", command, may{false, false, false}},
		{"a command with a schedule", clock, command, may{false, false, false}},
		{"the memory of the user", "", fmt.Sprintf(agent, "user", "remember: auto"), may{false, false, false}},
		{"changes of it", "", fmt.Sprintf(agent, "user", "edit_memory: auto"), may{false, false, false}},
		{"the memory of the user, asked", "", fmt.Sprintf(agent, "user", "remember: ask"), may{true, true, true}},
		{"the memory of the user, read", "", fmt.Sprintf(agent, "user", "recall: auto"), may{true, true, true}},
		{"the memory of the workflow", "", fmt.Sprintf(agent, "workflow", "remember: auto"), may{true, true, true}},
		{"the memory of the user in a sub-workflow", "", `s: {workflow: child.yaml}`, may{false, false, false}},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
				t.Setenv(name, filepath.Join(dir, "home"))
			}
			write := func(name, on, roles string) {
				if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "wf: 1\nname: %s\nsecrets: [HOOK]\n%s\nroles:\n  %s\n", name[:4], on, roles), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("child.yaml", "", fmt.Sprintf(agent, "user", "remember: auto"))
			write("flow.yaml", x.on, x.roles)
			f, ok := Catalog{u: &Setup{}, Dirs: []string{dir}}.read(filepath.Join(dir, "flow.yaml"))
			if !ok || f.Program == nil {
				t.Fatal(f.Problem)
			}
			if got := (may{f.Served() == nil, f.Scheduled() == nil, f.Hooked() == nil}); got != x.want {
				t.Errorf("it may %+v, want %+v", got, x.want)
			}
			e := f.Entry()
			if waits := e.Waits || e.ScheduleProblem != "" || e.WebhookProblem == "it waits for trust"; x.on == clock && !waits {
				t.Error("the list says nothing of it")
			}
		})
	}
}

// The question of trust shows all that decides what a workflow does, and what each of its powers is about.
func TestF412TheQuestionOfTrustShowsAllOfIt(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, filepath.Join(dir, "home"))
	}
	file := filepath.Join(dir, "flow.yaml")
	if err := os.WriteFile(file, []byte(`wf: 1
name: flow
secrets: [TOKEN, HOOK]
on: {schedule: "@daily", webhook: {kind: github, secret: HOOK}}
notify: [{name: team, webhook: "https://example.com/team"}]
roles:
  build: {run: "make it", env: {BASH_ENV: evil.sh}, stdin: "piped in", dir: sub, cache: {inputs: [in], toolchain: [sh tools.sh], env: [LANG]}}
  send: {run: "send it", env: {TOKEN: "${{ secrets.TOKEN }}"}}
  coder: {prompt: "Do as you are told.", model: openai/x, tools: [write_file, shell: auto], network: ["example.com:443"], memory: {scope: user}}
  open: {prompt: "Be free.", model: openai/x, tools: [shell], sandbox: off}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	u := &Setup{}
	d, err := u.Read(file)
	if err != nil || d.Program == nil {
		t.Fatal(d.Diags, err)
	}
	w, err := u.Weigh(d, d.Program)
	if err != nil {
		t.Fatal(err)
	}
	all, err := u.Questions(Ask([]Weighed{w}))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, q := range all {
		text += q.Does + "\n" + strings.Join(q.Acts, "\n") + "\n"
	}
	for _, part := range []string{"make it", "env BASH_ENV: evil.sh", "env TOKEN: ${{ secrets.TOKEN }}", "stdin: piped in", "dir: sub", "cache toolchain: sh tools.sh", "cache env: LANG", "an agent",
		"prompt: Do as you are told.", "tool shell: auto", "network: example.com:443", "memory: user", "without a sandbox", "prompt: Be free.", "notify team: ", "example.com/team"} {
		if n := strings.Count(text, part); n == 0 || strings.HasPrefix(part, "make") && n > 1 {
			t.Errorf("%q stands %d times in\n%s", part, n, text)
		}
	}
	if len(all) != 5 {
		t.Errorf("%d powers are asked for", len(all))
	}
}
