package roles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

// A watcher takes deltas as a live subscriber does.
type watcher struct {
	mu   sync.Mutex
	text strings.Builder
	seen func(all string) // called with all the text so far
}

func (w *watcher) emit(_ context.Context, data ...protocol.Data) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range data {
		w.text.WriteString(d.(protocol.Delta).Text)
	}
	if w.seen != nil {
		w.seen(w.text.String())
	}
	return nil
}

func command(t *testing.T, script string) protocol.Turn {
	t.Helper()
	return protocol.Turn{
		Run: "01JRUN", Step: protocol.StepID{Role: "test", N: 2, Index: -1}, Visit: 2, Attempt: 1, Key: "k3y",
		Role:      protocol.Role{Name: "test", Action: protocol.ActRun, Run: script},
		Inputs:    protocol.JSON(`{"package":"a"}`),
		Workspace: t.TempDir(),
	}
}

func perform(t *testing.T, turn protocol.Turn) (protocol.Conclusion, error) {
	t.Helper()
	return new(Run).Perform(t.Context(), turn, new(watcher).emit)
}

func TestRunConcludesWithTextAndExitCode(t *testing.T) {
	for _, test := range []struct {
		name, script string
		goesOn       bool
		text, data   string
		class        string // of the failure
	}{
		{"a green command", "echo ok", false, "ok", `{"exit_code":0}`, ""},
		{"both streams, in order", "echo a; echo b >&2; echo c", false, "a\nb\nc", `{"exit_code":0}`, ""},
		{"newlines at the end are trimmed", `printf 'a\r\n\n\n'`, false, "a", `{"exit_code":0}`, ""},
		{"nothing said", "true", false, "", `{"exit_code":0}`, ""},
		{"a red command", "echo no; exit 3", false, "no", `{"exit_code":3}`, "exit_code"},
		{"a red command whose exit code is data", "echo no; exit 3", true, "no", `{"exit_code":3}`, ""},
		{"a temporary failure", "exit 75", false, "", `{"exit_code":75}`, "exit_75"},
		{"a command that is killed", "kill -9 $$", false, "", `{"exit_code":137}`, "exit_code"},
		{"a command that does not exist", "no-such-command-here 2>/dev/null", false, "", `{"exit_code":127}`, "exit_code"},
		{"invalid UTF-8 and NUL", `printf 'a\377b\000c'`, false, "a\ufffdbc", `{"exit_code":0}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			turn := command(t, test.script)
			turn.Role.ContinueOnError = test.goesOn
			c, err := perform(t, turn)
			var f *protocol.Failure
			switch {
			case test.class == "" && err != nil:
				t.Fatal(err)
			case test.class != "" && (!errors.As(err, &f) || f.Class != test.class || f.Code != "exit_code" || f.Phase != "run"):
				t.Fatalf("have %#v, want a failure of class %s", err, test.class)
			}
			if textOf(c) != test.text || string(c.Data) != test.data {
				t.Errorf("have %q %s, want %q %s", textOf(c), c.Data, test.text, test.data)
			}
		})
	}
}

func TestW21CommandReadsTheTurn(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	turn := command(t, `cat; cat "$WF_TURN"; printf '%s %s %s' "$WF_RUN_ID" "$WF_ATTEMPT" "$WF_STEP_KEY"`)
	turn.EdgePrompt = "fix <it>"
	turn.Role.Output = ""
	start, first, second := link(t, 1), link(t, 2), link(t, 3)
	turn.History = protocol.History{
		Role:  "test",
		Visit: protocol.Past{Role: "test", Visit: 2, Parents: []protocol.Link{second}},
		Past: []protocol.Past{
			{CID: second, Role: "coder", Visit: 1, Parents: []protocol.Link{first}, Status: protocol.StepOK, Text: "done", Data: protocol.JSON(`{"status":"done"}`)},
			{CID: first, Role: "test", Visit: 1, Parents: []protocol.Link{start}, EdgePrompt: "go", Status: protocol.StepOK, Text: "red"},
		},
	}
	run := Run{Messages: func(protocol.History, int) (protocol.Told, error) {
		return protocol.Told{Messages: []protocol.Message{{Role: "system", Content: "be brief"}, {Role: "user", Content: "fix <it>"}}}, nil
	}}
	c, err := run.Perform(t.Context(), turn, new(watcher).emit)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(textOf(c), "\n")
	if len(lines) != 3 || lines[0] != lines[1] || lines[2] != "01JRUN 1 k3y" {
		t.Fatalf("stdin and WF_TURN differ, or the variables are missing:\n%s", textOf(c))
	}
	want := `{"schema":"wf.turn/v1","run":"01JRUN","step":"test#2","role":"test","visit":2,"attempt":1,` +
		`"edgePrompt":"fix <it>","system":"be brief",` +
		`"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"fix <it>"}],` +
		`"history":[{"role":"test","visit":1,"edgePrompt":"go","status":"ok","text":"red","data":null,"cid":"` + first.String() + `"},` +
		`{"role":"coder","visit":1,"edgePrompt":"","status":"ok","text":"done","data":{"status":"done"},"cid":"` + second.String() + `"}],` +
		`"inputs":{"package":"a"},"output_schema":null}`
	if d := cmp.Diff(want, lines[0]); d != "" {
		t.Error(d)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestW21CommandAnswersLikeAnAgent(t *testing.T) {
	const schema = `{"properties":{"n":{"type":"integer"},"status":{"enum":["done","stuck"]}},"required":["status"],"type":"object"}`
	for _, test := range []struct {
		name, script string
		text, data   string
		wrong        string
	}{
		{"frontmatter", `echo noise >&2; printf -- '---\nstatus: done\nn: 2\n---\nThe body.\n'`, "---\nstatus: done\nn: 2\n---\nThe body.", `{"exit_code":0,"n":2,"status":"done"}`, ""},
		{"JSON", `echo noise >&2; echo '{"status": "stuck"}'`, `{"status": "stuck"}`, `{"exit_code":0,"status":"stuck"}`, ""},
		{"no fields at all", "echo noise >&2; echo hi", "", `{"exit_code":0}`, "---"},
		{"an unknown value", `echo '{"status":"maybe"}'`, "", `{"exit_code":0}`, "/status"},
		{"a missing field", `echo '{}'`, "", `{"exit_code":0}`, "status"},
		{"broken JSON", `echo '{"status":'`, "", `{"exit_code":0}`, "byte"},
		{"a number that others read differently", `echo '{"status":"done","n":9007199254740993}'`, "", `{"exit_code":0}`, "byte"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			turn := command(t, test.script)
			turn.Role.Output = schema
			c, err := perform(t, turn)
			if string(c.Data) != test.data {
				t.Errorf("data %s, want %s", c.Data, test.data)
			}
			if test.wrong != "" {
				var f *protocol.Failure
				if !errors.As(err, &f) || f.Phase != "output_validation" || !strings.Contains(f.Message, test.wrong) {
					t.Fatalf("have %v, want a violation that names %q", err, test.wrong)
				}
				return
			}
			if err != nil || textOf(c) != test.text {
				t.Errorf("have %q, %v; want %q", textOf(c), err, test.text)
			}
		})
	}
}

func TestRunFailsWithEverythingItSaid(t *testing.T) {
	turn := command(t, "echo out; echo why >&2; exit 1")
	turn.Role.Output = `{"type":"object"}`
	c, err := perform(t, turn)
	if err == nil || !strings.Contains(textOf(c), "why") || !strings.Contains(textOf(c), "out") {
		t.Errorf("have %q, %v", textOf(c), err)
	}
}

func TestRunEnvironmentIsClean(t *testing.T) {
	run := Run{
		Environ: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=/h", "LANG=C", "SSH_AUTH_SOCK=/s", "MAX_TOKENS=9",
			"OPENAI_API_KEY=k1", "ANTHROPIC_API_KEY=k2", "ANTHROPIC_AUTH_TOKEN=k3", "SOMEONES_API_KEY=k4", "HF_TOKEN=k5", "LOCAL_KEY=k6",
			"GITHUB_TOKEN=g", "DEPLOY_TOKEN=d3ploy", "DB_PASSWORD=p", "AWS_SECRET_ACCESS_KEY=a",
		},
		ModelKeys: []string{"LOCAL_KEY"},
	}
	turn := command(t, `env | grep -v -e ^WF_TURN= -e ^PATH= -e ^_= -e ^PWD= -e ^SHLVL= -e ^OLDPWD= | sort`)
	turn.Secrets = []string{"DEPLOY_TOKEN", "OPENAI_API_KEY"}
	turn.Env = map[string]string{
		"GIVEN": "Bearer " + protocol.SecretRef("OPENAI_API_KEY"),
		"PLAIN": "x",
		"HOME":  "/mine",
	}
	c, err := run.Perform(t.Context(), turn, new(watcher).emit)
	if err != nil {
		t.Fatal(err)
	}
	want := "DEPLOY_TOKEN=[secret:DEPLOY_TOKEN]\nGIVEN=Bearer [secret:OPENAI_API_KEY]\nHOME=/mine\nLANG=C\nMAX_TOKENS=9\nPLAIN=x\nSSH_AUTH_SOCK=/s\n" +
		"WF_ATTEMPT=1\nWF_RUN_ID=01JRUN\nWF_STEP_KEY=k3y"
	if d := cmp.Diff(want, textOf(c)); d != "" {
		t.Error(d)
	}
}

func TestRunGivesTheValueOfASecretToTheCommandAlone(t *testing.T) {
	turn := command(t, `test "$TOKEN" = s3cr3t && printf 's3c'; printf 'r3t\n'; cat "$WF_TURN"`)
	turn.Secrets, turn.Env = []string{"TOKEN"}, map[string]string{"TOKEN": protocol.SecretRef("TOKEN")}
	var w watcher
	run := Run{Environ: []string{"PATH=" + os.Getenv("PATH"), "TOKEN=s3cr3t"}}
	c, err := run.Perform(t.Context(), turn, w.emit)
	if err != nil {
		t.Fatal(err)
	}
	if text, _, _ := strings.Cut(textOf(c), "\n"); text != "[secret:TOKEN]" {
		t.Errorf("have %q, want the secret hidden", text)
	}
	if all := textOf(c) + w.text.String(); strings.Contains(all, "s3cr3t") {
		t.Errorf("the secret got out: %s", all)
	}
}

func TestRunSuspendsWithoutASecret(t *testing.T) {
	turn := command(t, "true")
	turn.Secrets, turn.Env = []string{"WF_TEST_NOT_SET"}, map[string]string{"T": protocol.SecretRef("WF_TEST_NOT_SET")}
	_, err := perform(t, turn)
	var f *protocol.Failure
	if !errors.As(err, &f) || !f.Suspend || f.Code != "secret_missing" || !strings.Contains(f.Message, "WF_TEST_NOT_SET") {
		t.Errorf("have %v, want a suspension that names the secret", err)
	}
}

func TestRunWorksInItsDirectory(t *testing.T) {
	turn := command(t, `pwd; echo "$PWD"`)
	turn.Role.Dir = "sub"
	_, err := perform(t, turn)
	var f *protocol.Failure
	if !errors.As(err, &f) || f.Code != "dir_missing" {
		t.Errorf("a missing directory: have %v", err)
	}
	dir := filepath.Join(turn.Workspace, "sub")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if c, err := perform(t, turn); err != nil || textOf(c) != dir+"\n"+dir {
		t.Errorf("have %q, %v; want %s", textOf(c), err, dir)
	}
	turn.Role.Dir = "../x"
	if _, err := perform(t, turn); !errors.As(err, &f) || f.Code != "dir_outside" {
		t.Errorf("a directory outside: have %v", err)
	}
	// An agent before it may have replaced the directory by a link.
	outside := t.TempDir()
	for _, to := range []string{outside, "..", "../" + filepath.Base(outside)} {
		if err := errors.Join(os.RemoveAll(dir), os.Symlink(to, dir)); err != nil {
			t.Fatal(err)
		}
		turn.Role.Dir, turn.Role.Run = "sub", "echo x > evil"
		if _, err := perform(t, turn); !errors.As(err, &f) || f.Code != "dir_outside" && f.Code != "dir_missing" {
			t.Errorf("a link to %s: have %v", to, err)
		}
	}
	for _, evil := range []string{filepath.Join(outside, "evil"), filepath.Join(filepath.Dir(turn.Workspace), "evil")} {
		if _, err := os.Lstat(evil); err == nil {
			t.Errorf("the command wrote %s", evil)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(turn.Workspace, "real"), 0o755), os.Remove(dir), os.Symlink("real", dir)); err != nil {
		t.Fatal(err)
	}
	turn.Role.Run = "pwd -P"
	if c, err := perform(t, turn); err != nil || textOf(c) != filepath.Join(turn.Workspace, "real") {
		t.Errorf("a link within the workspace: have %q, %v", textOf(c), err)
	}
}

func TestRunBoundsFiftyMegabytes(t *testing.T) {
	const total = 50 << 20
	var got int
	emit := func(_ context.Context, data ...protocol.Data) error {
		for _, d := range data {
			got += len(d.(protocol.Delta).Text)
		}
		return nil
	}
	turn := command(t, fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", total))
	c, err := new(Run).Perform(t.Context(), turn, emit)
	if err != nil {
		t.Fatal(err)
	}
	if got != total {
		t.Errorf("streamed %d bytes, want %d", got, total)
	}
	mark := fmt.Sprintf("\n…[%d bytes dropped]…\n", total-OutputMax)
	if n := len(textOf(c)); n != OutputMax+len(mark) || !strings.Contains(textOf(c), mark) {
		t.Errorf("kept %d bytes, want %d with %q", n, OutputMax+len(mark), mark)
	}
}

func TestRunDoesNotWaitForABackgroundChild(t *testing.T) {
	turn := command(t, `sleep 600 & echo $!`)
	c, err := perform(t, turn)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(textOf(c), &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the background child was not left alone: %v", err)
	}
}

func TestRunDoesNotWaitForACommandToRead(t *testing.T) {
	turn := command(t, "exit 0")
	turn.EdgePrompt = strings.Repeat("x", 1<<20) // more than a pipe holds
	if _, err := perform(t, turn); err != nil {
		t.Fatal(err)
	}
}

// stopWhen cancels the command once it has said a word, and gives back what Perform did.
func stopWhen(t *testing.T, run Run, turn protocol.Turn, word string) (protocol.Conclusion, error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	w := watcher{seen: func(all string) {
		if strings.Contains(all, word) {
			cancel(errEnough)
		}
	}}
	return run.Perform(ctx, turn, w.emit)
}

var errEnough = errors.New("enough")

func TestRunStopsByTERM(t *testing.T) {
	c, err := stopWhen(t, Run{}, command(t, `trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done`), "ready")
	if !errors.Is(err, errEnough) {
		t.Fatalf("have %v, want the cause", err)
	}
	if !strings.HasPrefix(textOf(c), "ready\n") || !strings.HasSuffix(textOf(c), "bye") {
		t.Errorf("have %q, want what it said until its end", textOf(c))
	}
}

func TestRunKillsWhatIgnoresTERM(t *testing.T) {
	turn := command(t, `trap '' TERM; (trap '' TERM; echo child > child; sleep 600) & echo $! ; while [ ! -s child ]; do :; done; echo ready; while :; do sleep 600; done`)
	c, err := stopWhen(t, Run{Grace: 50 * time.Millisecond}, turn, "ready")
	if !errors.Is(err, errEnough) {
		t.Fatalf("have %v, want the cause", err)
	}
	var pid int
	if _, err := fmt.Sscan(textOf(c), &pid); err != nil {
		t.Fatal(err)
	}
	dies(t, pid)
}

// dies waits for a process that was sent SIGKILL: the kernel takes a moment.
func dies(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); alive(pid); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("child %d lives on", pid)
		}
	}
}

// alive reports whether a process runs; one that ended but was not waited for does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func TestRunStopsWhenNobodyCanTakeItsOutput(t *testing.T) {
	full := errors.New("disk full")
	emit := func(context.Context, ...protocol.Data) error { return full }
	_, err := new(Run).Perform(t.Context(), command(t, "echo x; sleep 600"), emit)
	if !errors.Is(err, full) {
		t.Errorf("have %v, want %v", err, full)
	}
}

func TestRunIsNotStartedWhenItIsTooLate(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	turn := command(t, "touch started")
	if _, err := new(Run).Perform(ctx, turn, new(watcher).emit); !errors.Is(err, errEnough) {
		t.Errorf("have %v", err)
	}
	if _, err := os.Stat(filepath.Join(turn.Workspace, "started")); err == nil {
		t.Error("the command ran")
	}
}

func TestRunSaysWhatDoesNotFitIntoTheEnvironment(t *testing.T) {
	turn := command(t, "true")
	turn.Env = map[string]string{"BIG": strings.Repeat("x", 1<<20)}
	_, err := perform(t, turn)
	var f *protocol.Failure
	if !errors.As(err, &f) || f.Code != "start_failed" || !strings.Contains(f.Message, "WF_TURN") {
		t.Errorf("have %v, want a failure that points to WF_TURN", err)
	}
}

func TestTurnSchemaIsJSON(t *testing.T) {
	turn := command(t, "")
	turn.Item = &protocol.ItemValue{Index: 1, Value: protocol.JSON(`"b"`)}
	turn.Role.Output = `{"type":"object"}`
	rendered, err := newTurnJSON(turn, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := rendered.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"item":{"index":1,"value":"b"}`, `"output_schema":{"type":"object"}`, `"messages":[]`, `"history":[]`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %s", out.String(), want)
		}
	}
}

// link is a CID of our own making: raw, identity-like, distinct per n.
func link(t *testing.T, n byte) protocol.Link {
	t.Helper()
	raw := append([]byte{1, 0x55, 0x12, 32}, make([]byte, 32)...)
	raw[len(raw)-1] = n
	l, err := protocol.CastLink(raw)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
