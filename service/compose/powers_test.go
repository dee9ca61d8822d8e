package compose

import (
	"fmt"
	"os"
	"path/filepath"
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
