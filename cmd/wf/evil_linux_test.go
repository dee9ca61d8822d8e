package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"wf/agentkit/sandbox"
	"wf/api"
)

// Variables of these tests: the program that they try, such as the built one, where it is not that of the tests;
// and the walls that a process which they start must find.
const (
	evilProgram = "WF_EVIL_PROGRAM"
	evilTier    = "WF_EVIL_TIER"
)

// An evil model and an evil repository try what was once possible (the findings of testdata/evil/attacks.yaml), on
// the program that users have. Outside of the workspace nothing is read, changed, connected to or run, no key
// leaves, nothing that is printed acts on a terminal, and the journal says what denied each attempt.
//
//	finding    who            what it does                                             what denies it
//	F-30 … 34  model          git's and wf's own files, links, sockets, tests it wrote  attacks.yaml says it for each
//	F-35, 36   repository     a store with runs of others, a schedule, its own model    lookedAt, serve
//	F-405      model          workflows for the clock, tasks of editors                 tried, serve
//	F-407      model          settings and caches for a role with a secret              tried
//	F-411, 417 model          keys beside programs, all processes                       attacks.yaml
//	F-414, 416 repository     work without an end, a text that is trusted elsewhere     lookedAt
//	F-38       model          calls that do not show what they are                      asked
//	F-39, 40   model, server  what acts on a terminal; the key in other forms           harm, after every act
//	F-41       model          network, processes, limits, environment, caches           attacks.yaml
//
// What needs another user or another machine is elsewhere: F-37 in hubreach_test.go and hub/relay, F-42 in refold_test.go.
func TestNothingEvilLeavesTheWorkspace(t *testing.T) {
	t.Parallel()
	tier := sandbox.Probe()
	if !tier.Holds {
		t.Skip("skipped: nothing is confined here: ", tier)
	}
	if want := os.Getenv(evilTier); want != "" && tier.Namespaces != (want == "with namespaces") {
		t.Fatalf("this is not a process %s: %v", want, tier)
	}
	w := newWorld(t)
	attacks := readAttacks(t, tier.Namespaces)
	attacks["racer"] = races()
	w.evilModel(attacks)
	w.settle(t)

	t.Run("a clone is looked at", w.lookedAt)
	daemon := w.serve(t)
	run := ""
	t.Run("the model tries everything", func(t *testing.T) { run = w.tried(t, attacks, tier.Namespaces) })
	if t.Failed() {
		return
	}
	t.Run("the model asks for it", func(t *testing.T) { w.asked(t, attacks["asker"]) })
	t.Run("what a user does afterwards", func(t *testing.T) { w.afterwards(t, run) })
	t.Run("the daemon", func(t *testing.T) { daemon(t) })
}

// settle makes the user's config and, by another user, the store of the repository. Then nothing more changes outside.
func (w *world) settle(t *testing.T) {
	program := os.Getenv(evilProgram)
	if program == "" {
		var err error
		if program, err = exec.LookPath("wf"); err != nil {
			t.Fatal(err)
		}
	}
	w.wf = filepath.Join(w.dir, "bin/wf")
	w.names["WF"] = w.wf
	w.must(os.Mkdir(filepath.Dir(w.wf), 0o755))
	installCopy(t, w.wf, program)
	w.put(filepath.Join(w.home, ".config/wf/config.yaml"), "providers:\n  evil: {wire: openai, base_url: \""+w.endpoint+"\", key_env: EVIL_KEY}\n"+
		"sandbox: {limits: {disk: 150000000, processes: 2000}}\nmcp: {mine: {command: [sh, server.sh]}}\n")
	config, aside := filepath.Join(w.project, ".wf/config.yaml"), filepath.Join(w.dir, "config.yaml")
	w.must(os.Rename(config, aside))
	elsewhere := filepath.Join(w.out, "off.yaml") // the same text, which the user trusted in another directory
	text, err := os.ReadFile(filepath.Join(w.project, "off.yaml"))
	w.must(err)
	w.put(elsewhere, string(text))
	w.does(t, 0, "", "trust", "--yes", elsewhere)
	w.must(os.Remove(elsewhere))
	mallory := func(file string) *exec.Cmd {
		cmd := w.wfCommand("run", file, "--no-input")
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + filepath.Join(w.dir, "mallory"), "XDG_RUNTIME_DIR=" + w.runtime, "GORACE=" + os.Getenv("GORACE")}
		return cmd
	}
	if out, err := mallory("gate.yaml").CombinedOutput(); exitOf(t, err) != 8 {
		t.Fatalf("wf run gate.yaml: %v: %s", err, out)
	}
	nap := mallory("nap.yaml") // it is killed while it waits, for five seconds
	out, err := nap.StdoutPipe()
	w.must(err)
	nap.Stderr = nap.Stdout
	w.must(nap.Start())
	for lines := bufio.NewScanner(out); !strings.Contains(lines.Text(), "waits for a timer"); {
		if !lines.Scan() {
			t.Fatalf("wf run nap.yaml does not wait: %v", nap.Wait())
		}
	}
	w.must(nap.Process.Kill())
	_ = nap.Wait() // killed
	w.must(os.Rename(aside, config))
	w.before = w.outside()
	w.unharmed(t)
}

// read is what a file of the project holds.
func (w *world) read(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.project, name))
	w.must(err)
	return string(b)
}

// does runs wf and wants an exit status, and something that it says.
func (w *world) does(t *testing.T, exit int, says string, args ...string) string {
	t.Helper()
	code, out := w.run(args...)
	if code != exit || !strings.Contains(out, says) {
		t.Errorf("wf %s: exit %d, want %d with %q:\n%s", strings.Join(args, " "), code, exit, says, out[max(0, len(out)-2000):])
	}
	return out
}

// lookedAt is what a user does first. Nothing of the repository runs, and no prompt leaves.
func (w *world) lookedAt(t *testing.T) {
	defer w.unharmed(t)
	w.does(t, 0, "from elsewhere", "ls")
	w.does(t, 0, "from elsewhere", "show", "-1")
	for _, args := range [][]string{{"log", "-1"}, {"log", "-2"}, {"verify"}, {"graph", "evil.yaml"}, {"models"}, {"export", "-1", "-o", "evil.car"}, {"replay", "-1"}} {
		w.does(t, 0, "", args...)
	}
	for _, args := range [][]string{{"doctor"}, {"validate", "evil.yaml", "asked.yaml", "gate.yaml", "big.yaml", "server.yaml", "workflows/tick.yaml"}} {
		w.run(args...)
	}
	w.must(os.Symlink(filepath.Join(w.home, ".netrc"), filepath.Join(w.project, "link.yaml")))
	w.must(os.Symlink("/proc/self/environ", filepath.Join(w.project, "environ.yaml")))
	for _, file := range []string{"reads.yaml", "linked.yaml", "link.yaml", "environ.yaml"} {
		w.does(t, 3, "not shown", "validate", file)
		w.does(t, 3, "not shown", "run", file, "--no-input")
		w.does(t, 3, "", "validate", file, "-o", "json")
	}
	w.does(t, 4, "wf store adopt", "resume", "-1", "--no-input")
	w.does(t, 4, "wf store adopt", "resume", "-2", "--no-input")
	w.does(t, 4, "wf store adopt", "answer", "-2", "yes")
	w.does(t, 1, "", "store", "adopt", "--no-input")
	w.does(t, 0, "", "import", "evil.car")
	w.does(t, 4, "wf store adopt", "resume", "-1", "--no-input")
	w.does(t, 4, "wf trust", "run", "evil.yaml", "--no-input") // the model of the project
	w.does(t, 4, "wf trust", "run", "moved.yaml", "--no-input", "--model", "own/test")
	w.does(t, 4, "wf trust", "run", "off.yaml", "--no-input", "--model", "evil/test")
	if code, out := w.run("run", "server.yaml", "--no-input", "--model", "evil/test"); code == 0 { // refused, or confined, and then no server
		t.Errorf("the program of a server: %s", out)
	}
	w.does(t, 1, "", "trust", "--no-input")
	w.does(t, 1, "", "trust", "workflows/tick.yaml", "--no-input")
	if code, out := w.run("run", "big.yaml"); code == 0 {
		t.Errorf("an expression of a gigabyte: %s", out)
	}
	if code, out := w.run("run", "slow.yaml"); code == 0 {
		t.Errorf("an expression of hours: %s", out)
	}
}

// serve starts a daemon in the workspace. What it gives ends it.
func (w *world) serve(t *testing.T) (stop func(*testing.T)) {
	t.Helper()
	cmd := w.wfCommand("serve", "--listen", "unix", "-o", "json")
	said := &safeBuffer{}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	w.must(err)
	w.must(cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("wf serve: %v\n%s", err, said)
	}
	var where api.Serving
	w.must(json.Unmarshal(line, &where))
	w.names["DAEMON"] = strings.TrimPrefix(where.Listen[0].URL, "unix:")
	for _, want := range []string{"left alone", "wf trust "} {
		awaitText(t, want, said)
	}
	return func(t *testing.T) {
		w.must(cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); exitOf(t, err) != 0 && exitOf(t, err) != 143 {
			t.Errorf("wf serve: %v\n%s", err, said)
		}
		w.note("wf serve", said.String(), true)
		w.unharmed(t)
	}
}

// results are what the journal says of the calls of a step, in order.
func (w *world) results(t *testing.T, run, step string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(w.journal(t, run)) {
		var e struct {
			Type string
			Step *string
			Data struct{ Content string }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.Type == "tool_result" && e.Step != nil && *e.Step == step {
			out = append(out, e.Data.Content)
		}
	}
	return out
}

// journal is that of a run, as programs read it.
func (w *world) journal(t *testing.T, run string) string {
	t.Helper()
	out, err := w.wfCommand("replay", run, "-o", "jsonl").Output()
	if err != nil {
		t.Fatalf("wf replay %s: %v", run, err)
	}
	w.note("the journal", string(out), false)
	return string(out)
}

// denied wants each attack of a role in the journal, with what denied it.
func (w *world) denied(t *testing.T, run, role string, attacks []attack) {
	t.Helper()
	results := w.results(t, run, role+"#1")
	for i, a := range attacks {
		if i >= len(results) {
			t.Errorf("%s: %s %s: the journal says nothing of it", a.Finding, role, a.Does)
			continue
		}
		if !regexp.MustCompile("(?s)" + a.Denied).MatchString(results[i]) {
			t.Errorf("%s: %s %s: the journal says\n%s\nwant %s", a.Finding, role, a.Does, results[i], a.Denied)
		}
	}
}

// flow names a workflow that can run here: where commands have no namespaces, one that lets them use the network.
func (w *world) flow(name string) string {
	w.t.Helper()
	if !w.open {
		return name
	}
	text, err := os.ReadFile(filepath.Join(w.project, name))
	w.must(err)
	w.put(filepath.Join(w.project, "open-"+name), strings.Replace(string(text), "\nroles:", "\ndefaults: {network: allow}\nroles:", 1))
	return "open-" + name
}

// tried is the id of the run in which the evil model tries all attacks.
func (w *world) tried(t *testing.T, attacks map[string][]attack, namespaces bool) string {
	defer w.unharmed(t)
	if !namespaces {
		w.open = true
		w.does(t, 4, "max_user_namespaces", "run", "evil.yaml", "--no-input", "--model", "evil/test")
	}
	out := w.does(t, 0, `"status": "done"`, "run", w.flow("evil.yaml"), "--no-input", "--model", "evil/test", "-o", "json")
	var said struct{ ID string }
	if err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "\n{\n")):]), &said); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, role := range []string{"coder", "thief"} {
		w.denied(t, said.ID, role, attacks[role])
	}
	journal := w.journal(t, said.ID)
	if !strings.Contains(journal, `"code":"dir_outside"`) || strings.Count(journal, `"type":"sandbox"`) < 3 {
		t.Errorf("the journal has no denial of the command in a directory outside, or no walls:\n%s", journal)
	}
	if !regexp.MustCompile(`"type":"sandbox","step":"check#1".*"met":`).MatchString(journal) {
		t.Errorf("the journal does not say what the tests of the project met:\n%s", journal)
	}
	for _, found := range []string{"workflows/clock.yaml", "workflows/linked.yaml", ".vscode/tasks.json"} {
		if !regexp.MustCompile(`"type":"tool_result","step":"coder#1".*"appeared":.*"path":"` + regexp.QuoteMeta(found) + `"`).MatchString(journal) {
			t.Errorf("the journal does not say that %s was left for other programs", found)
		}
	}
	if b, err := os.ReadFile(filepath.Join(w.project, "deployed")); err != nil || string(b) != "clean\n" {
		t.Errorf("the role with a secret met what another one left: %q, %v", b, err)
	}
	want := []string{"model", "make", "check"}
	if w.tests {
		want = append(want, "go")
	}
	w.ranInside(t, namespaces, want...)
	return said.ID
}

// ranInside wants that the programs of the repository ran, and within walls: else nothing was tried.
func (w *world) ranInside(t *testing.T, namespaces bool, want ...string) {
	t.Helper()
	ran, err := os.ReadFile(filepath.Join(w.project, "ran"))
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(ran)) {
		line = strings.TrimSuffix(line, "\n")
		name, space := line[:max(0, strings.LastIndexByte(line, ' '))], line[strings.LastIndexByte(line, ' ')+1:]
		names = append(names, name)
		if namespaces && (space == here || space == "") {
			t.Errorf("%s ran in the namespace %q, that of the user is %s", name, space, here)
		}
	}
	for _, name := range want {
		if !slices.Contains(names, name) {
			t.Errorf("%s was not tried: %q", name, names)
		}
	}
}

// asked denies what needs a word, having read what it is.
func (w *world) asked(t *testing.T, attacks []attack) {
	defer w.unharmed(t)
	code, out := w.run("run", w.flow("asked.yaml"), "--no-input", "--model", "evil/test")
	for _, shown := range []string{"sh " + w.names["EVIL"] + " approval", "hidden", "sh " + w.names["EVIL"] + " bidi"} {
		if code != 8 || !strings.Contains(out, shown) {
			t.Fatalf("exit %d, and the question does not show %q:\n%s", code, shown, out)
		}
		if _, err := os.Stat(filepath.Join(w.project, "key.txt")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it was written unasked: %v", err)
		}
		code, out = w.run("answer", "-1", "deny no")
	}
	if code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	w.denied(t, "-1", "asker", attacks)
}

// afterwards is what a user does with what the model left.
func (w *world) afterwards(t *testing.T, run string) {
	defer w.unharmed(t)
	step := run + ":coder#1"
	for _, args := range [][]string{{"ls"}, {"ls", "--all"}, {"show", run}, {"show", step}, {"show", run, "-o", "json"}, {"log", run}, {"log", step}, {"log", run, "-o", "jsonl"},
		{"messages", step}, {"explain", run + ":thief#1"}, {"replay", run}, {"replay", run, "--check"}, {"cost", run}, {"cache", run}, {"trace", run, "--prompts"}, {"watch", run},
		{"verify"}, {"verify", run}, {"export", run, "-o", "whole.car"}, {"verify", "whole.car"}, {"import", "whole.car"}, {"gc", "--yes"}, {"resume", run, "--no-input"},
		{"graph", "evil.yaml"}, {"models"}, {"memory", "ls"}, {"task", "ls", run}, {"doctor"}, {"doctor", "--clean"}, {"trust", "--list"}, {"schema"}, {"version"},
		{"init"}, {"init", "--example", "gate"}, {"__complete", "run", ""}, {"__complete", "show", ""}, {"ls", "--hub", "unix:" + w.names["DAEMON"]}} {
		w.does(t, 0, "", args...)
	}
	w.does(t, 1, "", "diff", run, "-1")
	w.does(t, 2, "an agent that worked here may have left it", "export", run, "-o", "run.car")
	w.does(t, 2, "it is done", "answer", run, "yes")
	w.does(t, 0, "", "fork", run+":check#1", "--worktree")
	w.run("resume", "-1", "--no-input")
	w.does(t, 0, "", "fork", run+":check#1")
	w.run("resume", "-1", "--no-input")
	w.does(t, 0, "", "run", w.flow("next.yaml"), "--no-input", "--model", "evil/test")
	hook := w.read(".husky/post-checkout")
	w.does(t, 0, "", "run", w.flow("copies.yaml"), "--no-input", "--model", "evil/test")
	if got := w.read(".husky/post-checkout"); got != hook || w.read("copied-pre-commit") != "copied\n" || !strings.Contains(w.read("evil.gitconfig"), "fsmonitor") {
		t.Errorf("what git runs was merged from a copy: %q", got)
	}
	w.does(t, 1, "AGENTS.md: path escapes", "run", "words.yaml", "--no-input", "--model", "evil/test")
	w.does(t, 0, "", "run", w.flow("race.yaml"), "--no-input", "--model", "evil/test")
	w.does(t, 1, "secret:EVIL_KEY", "run", "liar.yaml", "--no-input", "--model", "evil/test")
	if code, out := w.run("run", "served.yaml", "--no-input", "--model", "evil/test"); code == 0 {
		t.Errorf("a server of the user with a script in the workspace: %s", out)
	}
	if !w.open {
		w.ranInside(t, true, "served")
	}
	if code, out := w.run("run", "moved.yaml", "--no-input", "--model", "evil/test"); code == 0 {
		t.Errorf("a provider moved the prompt elsewhere: %s", out)
	}
	w.does(t, 4, "wf trust", "run", "evil.yaml", "--no-input")
	w.does(t, 0, "", "verify")
}

// Each attack does harm where nothing denies it, and the world says so. Else it would prove nothing.
func TestEachAttackHarmsWithoutWalls(t *testing.T) {
	t.Parallel()
	if tier := sandbox.Probe(); !tier.Namespaces {
		t.Skip("skipped: some attacks make namespaces: ", tier)
	}
	for role, list := range readAttacks(t, true) {
		for _, a := range list {
			if a.command() == "" || a.Alone != "" {
				continue
			}
			t.Run(fmt.Sprintf("%s %s %s", a.Finding, role, a.Does), func(t *testing.T) {
				w := newWorld(t)
				t.Cleanup(w.endWhatIsLeft)
				w.before = w.outside()
				if harm := w.harm(); len(harm) > 0 {
					t.Fatalf("harm before the attack: %q", harm)
				}
				cmd := exec.CommandContext(t.Context(), "sh", "-c", w.fill(a.command()))
				cmd.Dir, cmd.Env = w.project, w.env
				out, err := cmd.CombinedOutput()
				w.note("the command", string(out), false)
				for deadline := time.Now().Add(time.Minute); len(w.harm()) == 0; time.Sleep(10 * time.Millisecond) { // a process ends, and a connection is taken, a little later: it is seen when one looks
					if time.Now().After(deadline) {
						t.Fatalf("it does no harm (%v):\n%s", err, out)
					}
				}
			})
		}
	}
}

// A user who is not root has the same walls.
func TestNothingEvilLeavesTheWorkspaceOfAUser(t *testing.T) {
	t.Parallel()
	again(t, "with namespaces", `exec setpriv --reuid=`+plainUser+` --regid=`+plainUser+` --clear-groups "$@"`)
}

// Where there are no namespaces a run is refused before it begins, unless its commands may use the network;
// then their files are confined.
func TestNothingEvilLeavesTheWorkspaceWithoutUserNamespaces(t *testing.T) {
	t.Parallel()
	for name, become := range map[string]string{
		"a user": `exec setpriv --reuid=` + plainUser + ` --regid=` + plainUser + ` --clear-groups "$@"`,
		"root":   `exec setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all "$@"`, // of a container
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again(t, "without namespaces", "echo 0 > /proc/sys/user/max_user_namespaces && "+become)
		})
	}
}

// again runs the test once more in a process of its own, which a shell command makes another one.
func again(t *testing.T, tier, become string) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: it takes long")
	}
	n := newWithoutNamespaces(t)
	self := filepath.Join(n.dir, "evil.test")
	if err := os.Rename(n.wf, self); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(n.dir, "testdata/evil"), os.DirFS("testdata/evil")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", become, "sh", self, "-test.v", "-test.run", "^TestNothingEvilLeavesTheWorkspace$")
	cmd.Dir = n.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.dir, "TMPDIR=" + n.dir, evilTier + "=" + tier, "GORACE=" + os.Getenv("GORACE")}
	if program := os.Getenv(evilProgram); program != "" {
		built := filepath.Join(n.dir, "built")
		installCopy(t, built, program)
		cmd.Env = append(cmd.Env, evilProgram+"="+built)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if tier == "without namespaces" {
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true, Pdeathsig: syscall.SIGKILL}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestNothingEvilLeavesTheWorkspace ") {
		t.Errorf("nothing was tried:\n%s", out)
	}
}
