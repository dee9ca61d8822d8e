package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"wf/engine"
	"wf/protocol"
)

// On a full disk files and conversation stay between no longer than a person wants: back at once, or forth when there is room.
func TestC05AFullDiskOnTheWayBack(t *testing.T) {
	b := newBench(t)
	mnt := t.TempDir()
	if err := unix.Mount("tmpfs", mnt, "tmpfs", 0, "size=512k"); err != nil {
		t.Skip("needs root to mount a small tmpfs: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mnt, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(mnt, ".gitignore"), []byte("*.log\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	yaml := strings.Replace(fmt.Sprintf(backYAML, 3), "n=$((", "head -c 200000 /dev/zero > big; [ -e n ] && echo small > big; n=$((", 1)
	p := b.load(yaml)
	run, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Source: []byte(yaml), Inputs: protocol.JSON("{}"), Workspace: mnt})
	if err != nil {
		t.Fatal(err)
	}
	b.drive(run)
	b.says(run, "one")
	b.says(run, "two")
	size := func() int64 {
		t.Helper()
		s, err := os.Stat(filepath.Join(mnt, "big"))
		if err != nil {
			t.Fatal(err)
		}
		return s.Size()
	}
	fill := filepath.Join(mnt, "fill.log")
	full := func() {
		t.Helper()
		if err := os.WriteFile(fill, bytes.Repeat([]byte("x"), 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
	for _, back := range []bool{true, false} {
		full()
		_, err := b.e.GoBack(t.Context(), run, b.before(run, 2))
		if open, ok := errors.AsType[*engine.RestoreOpenError](err); !ok || !errors.Is(open, unix.ENOSPC) {
			t.Fatalf("on a full disk: %v", err)
		}
		if !back {
			if err := os.Remove(fill); err != nil {
				t.Fatal(err)
			}
		}
		v, err := b.e.GoOnRestoring(t.Context(), mnt, back, nil)
		if err != nil || len(v.Conflicts) > 0 || (v.Next == "") != back {
			t.Fatalf("%+v, %v", v, err)
		}
		if got := size(); back == (got == 200000) {
			t.Errorf("back %t: big has %d bytes", back, got)
		}
	}
	if n := len(b.forks(run)); n != 1 {
		t.Errorf("%d forks", n)
	}
}
