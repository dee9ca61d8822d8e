package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"wf/agentkit/tool"
	"wf/roles"
)

func call(t *testing.T, at tool.Workspace, name string, args any) tool.Result {
	t.Helper()
	tools, err := tool.Named([]string{name}, tool.All())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tools[0].Run(t.Context(), at, raw)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type args map[string]any

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFilesAreReadAndWritten(t *testing.T) {
	dir := t.TempDir()
	at := tool.Workspace{Dir: dir}
	write(t, dir, "a.txt", "one\ntwo\nthree\n")
	write(t, dir, "run.sh", "echo\n")
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool string
		args args
		want string
		err  bool
	}{
		{"read_file", args{"path": "a.txt"}, "one\ntwo\nthree\n", false},
		{"read_file", args{"path": "./x/../a.txt", "start_line": 2, "end_line": 2}, "two\n", false},
		{"read_file", args{"path": filepath.Join(dir, "a.txt"), "start_line": 3}, "three\n", false},
		{"read_file", args{"path": "a.txt", "start_line": 9}, "error: a.txt has 3 lines", true},
		{"read_file", args{"path": "a.txt", "start_line": 4}, "error: a.txt has 3 lines", true},
		{"read_file", args{"path": "a.txt", "start_line": 3, "end_line": 2}, "error: end_line 2 is before start_line 3; no lines are between them", true},
		{"read_file", args{"path": "a.txt", "start_line": 10, "end_line": 5}, "error: end_line 5 is before start_line 10; no lines are between them", true},
		{"read_file", args{"path": "a.txt", "end_line": -1}, "error: end_line -1 is before start_line 1; no lines are between them", true},
		{"read_file", args{"path": "a.txt", "start_line": 9, "end_line": 12}, "error: a.txt has 3 lines", true},
		{"read_file", args{"path": args{}}, "error: the arguments do not fit: path holds an object, want a string", true},
		{"read_file", args{"path": []string{}}, "error: the arguments do not fit: path holds an array, want a string", true},
		{"read_file", args{"path": true}, "error: the arguments do not fit: path holds a bool, want a string", true},
		{"edit_file", args{"path": "a.txt", "old": "one", "new": "one"}, "error: a.txt is not changed: new is the same text as old", true},
		{"read_file", args{"path": "none"}, "error: none: no such file or directory", true},
		{"read_file", args{"path": "."}, "error: .: no regular file", true},
		{"read_file", args{}, `error: the argument "path" is missing`, true},
		{"read_file", args{"path": "a.txt", "line": 1}, `error: the arguments do not fit: unknown field "line"`, true},
		{"write_file", args{"path": "new/deep/b.txt", "content": "<b>\n"}, "wrote 4 bytes to new/deep/b.txt", false},
		{"read_file", args{"path": "new/deep/b.txt"}, "<b>\n", false},
		{"write_file", args{"path": "run.sh", "content": "true\n"}, "wrote 5 bytes to run.sh", false},
		{"edit_file", args{"path": "a.txt", "old": "two", "new": "2"}, "edited a.txt", false},
		{"edit_file", args{"path": "a.txt", "old": "e", "new": "2"}, "error: a.txt holds the text of old 3 times; take more lines around it", true},
		{"edit_file", args{"path": "a.txt", "old": "two", "new": "2"}, "error: a.txt does not hold the text of old; read the file again", true},
		{"list_files", args{"path": "."}, "a.txt\nnew/\nrun.sh\n", false},
		{"list_files", args{"path": "new/deep"}, "b.txt\n", false},
		{"list_files", args{"path": "a.txt"}, "error: a.txt: not a directory", true},
	} {
		if r := call(t, at, c.tool, c.args); r.Content != c.want || r.IsError != c.err {
			t.Errorf("%s %v gives %q (error: %v), want %q", c.tool, c.args, r.Content, r.IsError, c.want)
		}
	}
	if got := read(t, dir, "a.txt"); got != "one\n2\nthree\n" {
		t.Errorf("a.txt is %q", got)
	}
	if info, err := os.Stat(filepath.Join(dir, "run.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("run.sh lost its mode: %v %v", info.Mode(), err)
	}
}

func TestB07NoPathLeavesTheWorkspace(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside, "secret", "top secret")
	for link, to := range map[string]string{"escape": outside, "file": filepath.Join(outside, "secret"), "up": "../"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	at := tool.Workspace{Dir: dir}
	for _, path := range []string{"../x", "a/../../x", filepath.Join(outside, "secret"), "escape/secret", "file", "up/x", "/etc/passwd"} {
		for name, a := range map[string]args{
			"read_file": {"path": path}, "write_file": {"path": path, "content": "x"},
			"edit_file": {"path": path, "old": "top", "new": "x"}, "list_files": {"path": path},
		} {
			if r := call(t, at, name, a); !r.IsError || strings.Contains(r.Content, "top secret") || !strings.Contains(r.Content, "outside of the workspace") {
				t.Errorf("%s %s gives %q", name, path, r.Content)
			}
		}
	}
	if got := read(t, outside, "secret"); got != "top secret" {
		t.Errorf("the file outside is %q", got)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside there is %v (%v)", left, err)
	}
}

func TestB07ReadingIsCapped(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "big", strings.Repeat("0123456789abcde\n", 10_000))
	write(t, dir, "wide", strings.Repeat("世", 40_000))
	write(t, dir, "binary", "a\x00b")
	at := tool.Workspace{Dir: dir}

	r := call(t, at, "read_file", args{"path": "big"})
	if want := strings.Repeat("0123456789abcde\n", 3125) + "\n…[110000 more bytes; go on with start_line 3126]"; r.Content != want {
		t.Errorf("got %d bytes ending in %q", len(r.Content), r.Content[len(r.Content)-80:])
	}
	if r := call(t, at, "read_file", args{"path": "big", "start_line": 9_999}); r.Content != strings.Repeat("0123456789abcde\n", 2) {
		t.Errorf("got %q", r.Content)
	}
	if r := call(t, at, "read_file", args{"path": "wide"}); !utf8.ValidString(r.Content) || strings.Count(r.Content, "世") != tool.ReadMax/3 {
		t.Error("a rune was split")
	} else if !strings.HasSuffix(r.Content, "…[70002 more bytes; line 1 is longer than one call gives, search shows parts of it]") {
		t.Errorf("it ends in %q", r.Content[len(r.Content)-100:])
	}
	if r := call(t, at, "read_file", args{"path": "binary"}); !r.IsError {
		t.Errorf("got %q", r.Content)
	}
}

func TestShellGivesCodeAndOutput(t *testing.T) {
	at := tool.Workspace{Dir: t.TempDir(), Environ: []string{"GIVEN=yes"}}
	t.Setenv("OPENAI_API_KEY", "leak")
	t.Setenv("SOMETHING", "leak")
	for command, want := range map[string]string{
		"true":                          "exit code: 0",
		"echo out; echo err >&2; false": "exit code: 1\nstdout:\nout\nstderr:\nerr",
		"echo $GIVEN$SOMETHING$OPENAI_API_KEY; test -n \"$PATH\"": "exit code: 0\nstdout:\nyes",
		"kill -9 $$":                 "exit code: 137",
		"cat":                        "exit code: 0",
		"printf 'a\\r\\nb\\377\\0c'": "exit code: 0\nstdout:\na\nb�c",
	} {
		if r := call(t, at, "shell", args{"command": command}); r.Content != want || r.IsError {
			t.Errorf("%s gives %q", command, r.Content)
		}
	}
}

func TestB07ShellOutputIsCappedInBoundedMemory(t *testing.T) {
	at := tool.Workspace{Dir: t.TempDir()}
	for name, c := range map[string]struct{ command, marker string }{
		"a little too much": {"head -c 19999 /dev/zero | tr '\\0' x; echo é; echo end", "…[5 characters left out]…"},
		"very much":         {"head -c 9000000 /dev/zero | tr '\\0' x; echo end; head -c 9000000 /dev/zero | tr '\\0' y >&2", "…[8980004 bytes left out]…"},
	} {
		r := call(t, at, "shell", args{"command": c.command})
		out, _, _ := strings.Cut(strings.TrimPrefix(r.Content, "exit code: 0\nstdout:\n"), "\nstderr:")
		if n := utf8.RuneCountInString(out); n < tool.StdoutMax || n > tool.StdoutMax+60 {
			t.Errorf("%s: %d characters of stdout", name, n)
		}
		if !strings.Contains(out, c.marker) || !strings.HasSuffix(out, "end") {
			t.Errorf("%s: it ends in %q", name, r.Content[max(0, len(r.Content)-100):])
		}
		if len(r.Content) > tool.StdoutMax+tool.StderrMax+200 {
			t.Errorf("%s: %d bytes in all", name, len(r.Content))
		}
	}
}

func TestShellHidesSecretsBeforeItCuts(t *testing.T) {
	hide := func() *roles.Redactor { return roles.NewRedactor(map[string]string{"PW": "hunter2hunter2"}) }
	at := tool.Workspace{Dir: t.TempDir(), Clean: hide().String, Redact: hide}
	var shown strings.Builder
	at.Watch = func(_, text string) { shown.WriteString(text) }
	r := call(t, at, "shell", args{"command": "head -c 13330 /dev/zero | tr '\\0' x; echo hunter2hunter2; head -c 13330 /dev/zero | tr '\\0' x; echo hunter2hunter2"})
	if strings.Contains(r.Content, "hunter2") || strings.Contains(shown.String(), "hunter2") || !strings.Contains(r.Content, "[secret:PW]") {
		t.Errorf("a secret got out")
	}
}

func TestShellEndsAsAGroup(t *testing.T) {
	dir := t.TempDir()
	at := tool.Workspace{Dir: dir}
	// Whoever holds the write end of a FIFO lives: its reader sees the end when the last is gone.
	fifo := func(name string) *os.File {
		path := filepath.Join(dir, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}

	left := fifo("left")
	r := call(t, at, "shell", args{"command": "exec 3> left; echo up >&3; sleep 1000 & echo done"})
	if r.Content != "exit code: 0\nstdout:\ndone" {
		t.Errorf("got %q", r.Content)
	}
	stubborn := fifo("stubborn")
	r = call(t, at, "shell", args{"timeout": 1, "command": "exec 3> stubborn; echo up >&3; trap '' TERM; (trap '' TERM; while :; do sleep 1; done)"})
	if !r.IsError || !strings.HasPrefix(r.Content, "error: the command was stopped after 1s") {
		t.Errorf("got %q", r.Content)
	}
	cancelled := fifo("cancelled")
	ctx, cancel := context.WithCancel(t.Context())
	at.Watch = func(string, string) { cancel() }
	shell, err := tool.Named([]string{"shell"}, tool.All())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shell[0].Run(ctx, at, json.RawMessage(`{"command":"exec 3> cancelled; echo up >&3; echo started; sleep 1000"}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for name, f := range map[string]*os.File{"left behind": left, "deaf to SIGTERM": stubborn, "cancelled": cancelled} {
		if said, err := io.ReadAll(f); err != nil || string(said) != "up\n" {
			t.Errorf("%s: it said %q (%v)", name, said, err)
		}
	}
}

// What is shown while a command runs holds no secret, wherever its output is cut: a value
// between two writes, a key in one long line, the body of a private key over many lines.
func TestShellShowsNoSecretOfSeveralPieces(t *testing.T) {
	hide := func() *roles.Redactor { return roles.NewRedactor(map[string]string{"PW": "hunter2hunter2"}) }
	body := strings.Repeat("MIIEowIBAAKCAQEAx7Kq3vZ0YtQm5sJ8nB4cD2fG6hL9pR1uW3eT0iO5aS7dF2gH\n", 12)
	for name, c := range map[string]struct{ command, secret, shown string }{
		"a value in two writes":         {"printf hunter2; sleep 0.05; echo hunter2 and more", "hunter2", "[secret:PW] and more"},
		"a value around a NUL":          {"printf 'hunter2\\000hunter2 and more'", "hunter2", "[secret:PW] and more"},
		"a value without a newline":     {"printf 'password: hunter2hunter2'", "hunter2", "password: [secret:PW]"},
		"a key in a long line":          {"head -c 20000 /dev/zero | tr '\\0' .; printf ' ghp_'; sleep 0.05; echo 16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F292c", "[redacted:"},
		"a private key, line by line":   {"echo '-----BEGIN RSA PRIVATE KEY-----'; while read -r l; do echo $l; sleep 0.001; done <key; echo '-----END RSA PRIVATE KEY-----'; echo after", "MIIEowIBAAKC", "after"},
		"a private key that never ends": {"echo '-----BEGIN RSA PRIVATE KEY-----'; cat key", "MIIEowIBAAKC", "[redacted:"},
	} {
		t.Run(name, func(t *testing.T) {
			at := tool.Workspace{Dir: t.TempDir(), Clean: hide().String, Redact: hide}
			if err := os.WriteFile(filepath.Join(at.Dir, "key"), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
			var shown strings.Builder
			at.Watch = func(_, text string) { shown.WriteString(text) }
			r := call(t, at, "shell", args{"command": c.command})
			if r.IsError || !strings.HasPrefix(r.Content, "exit code: 0") {
				t.Fatal(r.Content)
			}
			for where, text := range map[string]string{"shown": shown.String(), "recorded": r.Content} {
				if strings.Contains(text, c.secret) || !strings.Contains(text, c.shown) {
					t.Errorf("%s: %q", where, text[max(0, len(text)-300):])
				}
			}
		})
	}
}
