package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

// What a chat offers of a workspace is what its ignore files leave, and no link leads out of it.
func TestAChatReadsTheFilesOfItsWorkspaceAlone(t *testing.T) {
	out, dir := t.TempDir(), t.TempDir()
	write(t, out, "secret", "not here\n")
	for name, text := range map[string]string{"a.go": "package a\n", ".gitignore": "*.log\n/gen/\n", "x.log": "", "gen/x.go": "", "sub/.wfignore": "local\n", "sub/local": "", "sub/b c.go": "b\n",
		"sub/deep/d.go": "d\n", ".git/config": "", ".wf/store.db": "runs", "sub/.WF/x": "", "new\nline": ""} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, text)
	}
	for name, to := range map[string]string{"out": filepath.Join(out, "secret"), "up": "../" + filepath.Base(out) + "/secret", "outdir": out, "in": "sub/deep/d.go", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newChatFiles(dir)
	paths, more, err := f.Paths(t.Context())
	want := []string{".gitignore", "a.go", "sub/.wfignore", "sub/b c.go", "sub/deep/d.go"}
	if err != nil || more || !slices.Equal(paths, want) {
		t.Errorf("%v, %v: %s", more, err, cmp.Diff(want, paths))
	}

	for name, want := range map[string]string{"a.go": "package a\n", "./sub/../a.go": "package a\n", "sub/b c.go": "b\n", "in": "d\n", filepath.Join(dir, "a.go"): "package a\n", "x.log": ""} {
		if text, size, err := f.Read(name, 100); string(text) != want || size != int64(len(want)) || err != nil {
			t.Errorf("%s: %q, %d, %v", name, text, size, err)
		}
	}
	if text, size, err := f.Read("a.go", 4); string(text) != "pack" || size != 10 || err != nil {
		t.Errorf("the beginning is %q of %d, %v", text, size, err)
	}
	for _, name := range []string{"none", "sub", ".", "pipe", "a.go/x", "sub/none", strings.Repeat("x", 5000)} {
		if _, _, err := f.Read(name, 100); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%.20s: %v", name, err)
		}
	}
	for _, name := range []string{"out", "up", "outdir/secret", "../" + filepath.Base(out) + "/secret", filepath.Join(out, "secret"), "/etc/passwd", "sub/../../x"} {
		if text, _, err := f.Read(name, 100); !errors.Is(err, protocol.ErrUsage) || !strings.Contains(err.Error(), "leads out of the workspace") || len(text) > 0 {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	for _, name := range []string{".wf/store.db", "sub/.WF/x"} {
		if text, _, err := f.Read(name, 100); !errors.Is(err, protocol.ErrUsage) || len(text) > 0 {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// A tree that is too large is listed from its top, up to a bound.
func TestAChatListsSoManyFilesOfATree(t *testing.T) {
	dir := t.TempDir()
	const each = 1000
	for d := range chatPathsMax/each + 1 {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprintf("d%02d", d)), 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range each {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("d%02d", d), fmt.Sprintf("%04d", i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	last := filepath.Join(dir, fmt.Sprintf("d%02d", chatPathsMax/each))
	write(t, dir, "top", "")
	f := newChatFiles(dir)
	paths, more, err := f.Paths(t.Context())
	if err != nil || !more || len(paths) != chatPathsMax || paths[0] != "top" {
		t.Errorf("%d paths, more %v, %v", len(paths), more, err)
	}
	if err := os.RemoveAll(last); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, false} { // one more than the bound, as many, one less
		if paths, more, err := f.Paths(t.Context()); err != nil || more != want || len(paths) != min(chatPathsMax, chatPathsMax+1-i) {
			t.Errorf("%d paths, more %v, %v", len(paths), more, err)
		}
		if err := os.Remove(filepath.Join(dir, "d00", fmt.Sprintf("%04d", i))); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := f.Paths(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it is not stopped: %v", err)
	}
}
