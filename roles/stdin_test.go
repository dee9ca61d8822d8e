package roles

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/protocol"
)

// reading is a turn of a command that reads what says says.
func reading(t *testing.T, script string, says protocol.Stdin) protocol.Turn {
	t.Helper()
	turn := command(t, script)
	turn.Role.Stdin, turn.Stdin = &says, &says
	return turn
}

func TestACommandReadsWhatItsRoleSays(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	big := strings.Repeat("0123456789abcde\n", 5<<20/16)
	all := []byte{'b', 0, 'a', '\r', '\n', 0xf0, 0x9f, 0x99, 0x82, '\t', 0x7f, '\n', '\n'}
	for _, test := range []struct{ name, script, stdin, want string }{
		{"nothing", "wc -c | tr -d ' '", "", "0"},
		{"a text, to the byte", "od -An -tx1 | tr -d ' \n'", string(all), "6200610d0af09f99820" + "97f0a0a"},
		{"more than the environment takes", "wc -c | tr -d ' '", strings.Repeat("x", 128<<10+1), "131073"},
		{"five megabytes", "sum=$(cksum); echo $sum", big, ""},
		{"its turn is in the file still", `cat; grep -c '"schema":"wf.turn/v1"' "$WF_TURN"`, "mine\n", "mine\n1"},
		{"by its name", "cat /dev/stdin", "mine", "mine"},
		{"a command that does not read it", "exec 0<&-; echo done", big, "done"},
		{"a command that ends in the middle", "head -c 3", big, "012"},
	} {
		t.Run(test.name, func(t *testing.T) {
			turn := reading(t, test.script, protocol.Stdin{Text: test.stdin})
			c, err := perform(t, turn)
			if err != nil {
				t.Fatal(err)
			}
			want := test.want
			if want == "" {
				file := filepath.Join(t.TempDir(), "big")
				if err := os.WriteFile(file, []byte(test.stdin), 0o600); err != nil {
					t.Fatal(err)
				}
				plain, err := perform(t, command(t, "sum=$(cksum < '"+file+"'); echo $sum"))
				if err != nil {
					t.Fatal(err)
				}
				want = textOf(plain)
			}
			if textOf(c) != want {
				t.Errorf("have %.80q, want %.80q", textOf(c), want)
			}
		})
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestACommandReadsAFileOfTheWorkspace(t *testing.T) {
	for _, test := range []struct {
		name, dir, file string
		code            string // of the failure
	}{
		{"in the workspace", "", "in.bin", ""},
		{"beside it", "sub", "near.bin", ""},
		{"above it, within the workspace", "sub", "../in.bin", ""},
		{"by a link within the workspace", "", "link", ""},
		{"none", "", "missing", "stdin_missing"},
		{"no name", "", "", "stdin_refused"},
		{"elsewhere", "", "/etc/hostname", "stdin_refused"},
		{"above the workspace", "sub", "../../x", "stdin_refused"},
		{"by a link that leads out", "", "out", "stdin_refused"},
		{"a directory", "", "sub", "stdin_refused"},
		{"what belongs to wf", "", ".wf/hub.token", "stdin_refused"},
		{"a name that no file can have", "", "a\x00b", "stdin_refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			turn := reading(t, "cat | od -An -tx1 | tr -d ' \n'", protocol.Stdin{File: test.file})
			turn.Role.Stdin = &protocol.Stdin{File: "${{ a template }}"}
			turn.Role.Dir = test.dir
			w := turn.Workspace
			content := []byte{0, 0xff, '\n', '\r'}
			if err := errors.Join(os.Mkdir(filepath.Join(w, "sub"), 0o700), os.WriteFile(filepath.Join(w, "in.bin"), content, 0o600),
				os.WriteFile(filepath.Join(w, "sub", "near.bin"), content, 0o600), os.Symlink("sub/near.bin", filepath.Join(w, "link")),
				os.Symlink("/etc", filepath.Join(w, "out"))); err != nil {
				t.Fatal(err)
			}
			c, err := perform(t, turn)
			if test.code == "" {
				if err != nil || textOf(c) != "00ff0a0d" {
					t.Errorf("have %q, %v", textOf(c), err)
				}
				return
			}
			var f *protocol.Failure
			if !errors.As(err, &f) || f.Code != test.code || strings.Contains(f.Message, w) {
				t.Errorf("have %v, want a failure %s without the place of the workspace", err, test.code)
			}
		})
	}
}

// noted are walls that read what a command is given.
type noted struct {
	Bare
	turn, stdin []byte
}

func (n *noted) Run(_ context.Context, c Command) (int, error) {
	var errs [2]error
	n.turn, errs[0] = os.ReadFile(c.Turn)
	n.stdin, errs[1] = io.ReadAll(c.Stdin)
	return 0, errors.Join(errs[:]...)
}

func TestAConfinedCommandReadsItsStdinAndMayOpenItsTurn(t *testing.T) {
	walls := &noted{}
	turn := reading(t, "cat", protocol.Stdin{Text: "mine"})
	turn.Confined = true
	if _, err := (&Run{Walls: walls}).Perform(t.Context(), turn, func(context.Context, ...protocol.Data) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(walls.turn), protocol.TurnSchema) || string(walls.stdin) != "mine" {
		t.Errorf("it may open %q and reads %q", walls.turn, walls.stdin)
	}
}
