package hook

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// On a full disk nothing is kept, and the sender is told so; what was kept begins, also in the next process, and once there is room events
// are taken again.
func TestAFullDiskLosesNoEvent(t *testing.T) {
	mnt := t.TempDir()
	if err := unix.Mount("tmpfs", mnt, "tmpfs", 0, "size=1500k"); err != nil {
		t.Skip("needs root to mount a small tmpfs: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mnt, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(mnt, "filler")
	if err := os.WriteFile(filler, make([]byte, 600<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(mnt, "hooks")
	s := spoolIn(t, dir, SpoolOptions{})
	big := `{"x":"` + strings.Repeat("x", 30<<10) + `"}`
	var kept []string
	full := func(from int) {
		t.Helper()
		failed := 0
		for i := from; failed < 3; i++ {
			request := fmt.Sprintf("a/%05d", i)
			taken, err := s.send("a", request, big)
			switch {
			case err == nil && taken.Fresh && failed == 0:
				kept = append(kept, request)
			case errors.Is(err, unix.ENOSPC):
				failed++
			default:
				t.Fatalf("%s: %+v, %v", request, taken, err)
			}
		}
	}
	full(0)
	if len(kept) == 0 {
		t.Fatal("nothing was kept")
	}
	if n, _, _ := s.Depth(); n != len(kept) {
		t.Errorf("%d wait, and %d were kept", n, len(kept))
	}
	s.killed()
	s = spoolIn(t, dir, SpoolOptions{})
	if n, _, _ := s.Depth(); n != len(kept) {
		t.Errorf("%d wait in the next process, and %d were kept", n, len(kept))
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	full(10_000) // the one that was refused can be kept
	if err := os.WriteFile(filler, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBegun()
	s.serve(b) // what has begun can be noted nowhere
	b.await(t, "all begin", func() bool { return b.count() == len(kept) })
	awaitDepth(t, s.Spool, 0)
	if !slices.Equal(b.order["a"], kept) {
		t.Error("they begin in another order")
	}
	s.sent("a", "a/again", big)
}
