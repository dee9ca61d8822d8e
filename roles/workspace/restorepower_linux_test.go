package workspace_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"wf/roles/workspace"
)

// What stops ext4 at once and forgets all that is not on its disk: FS_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH.
const (
	goDown     = 0x8004587d
	noLogFlush = 2
)

// A disk is a file system of its own, which can lose its power.
type disk struct{ device, dir string }

func newDisk(t *testing.T) disk {
	image := filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		t.Skipf("needs mkfs.ext4: %v\n%s", err, out)
	}
	device, err := exec.Command("losetup", "--find", "--show", image).Output()
	if err != nil {
		t.Skip("needs a loop device: ", err)
	}
	d := disk{strings.TrimSpace(string(device)), t.TempDir()}
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", d.device).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	if err := unix.Mount(d.device, d.dir, "ext4", 0, ""); err != nil {
		t.Skip("needs ext4: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.dir, 0); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d disk) losePower(t *testing.T) {
	t.Helper()
	fd, err := unix.Open(d.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = unix.IoctlSetPointerInt(fd, goDown, noLogFlush)
	unix.Close(fd)
	if err != nil {
		t.Fatal(err)
	}
}

// commit has the names of files on disk, as for any program that waits for a file of its own; their content need not be.
func (d disk) commit(t *testing.T) {
	t.Helper()
	f, err := os.Create(filepath.Join(d.dir, "other"))
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

func (d disk) comeBack(t *testing.T) {
	t.Helper()
	if err := unix.Unmount(d.dir, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(d.device, d.dir, "ext4", 0, ""); err != nil {
		t.Fatal(err)
	}
}

// C-3: a machine that loses its power leaves the old or the new state of each file, whether they are few or many, and what Restore
// says that it has done stays.
func TestC03ALossOfPowerLeavesOldOrNewFiles(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a file system")
	}
	if os.Getenv("WF_TEST_POWER") == "" { // in a name space of its own: no other process keeps what is mounted
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "WF_TEST_POWER=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if strings.Contains(string(out), "--- SKIP") {
			t.Skip(string(out))
		}
		return
	}
	for _, files := range []int{3, 15, 16, 17, 600} {
		t.Run(fmt.Sprint(files), func(t *testing.T) {
			d := newDisk(t)
			dir, k := filepath.Join(d.dir, "work"), kept{}
			state := func(n int) map[string]string {
				out := map[string]string{}
				for i := range files {
					out[fmt.Sprintf("d%d/f%d", i%5, i)] = fmt.Sprintf("%d %0*d", n, 10+i*13%9000, i)
				}
				return out
			}
			lay(t, dir, state(1))
			other := k.tree(t, dir)
			lay(t, dir, state(0))
			first := k.tree(t, dir)
			changes := k.diff(t, first, other)
			old, now := state(0), state(1)
			for round := range 8 {
				if err := workspace.Flush(dir); err != nil {
					t.Fatal(err)
				}
				r, last := workspace.Restoring{Open: k.open}, round%4 == 3
				if round%4 == 0 { // while files are written
					at := 1 + rand.IntN(len(changes))
					r.Each = func(done int) {
						if done == at {
							d.losePower(t)
						}
					}
				}
				stopped := make(chan struct{})
				watched := changes[rand.IntN(len(changes))]
				if round%4 == 1 || round%4 == 2 { // while they change places
					go func() {
						defer close(stopped)
						for b := []byte(old[watched.Path]); string(b) == old[watched.Path]; {
							var err error
							if b, err = os.ReadFile(filepath.Join(dir, watched.Path)); err != nil {
								t.Error(err)
								return
							}
						}
						d.commit(t)
						d.losePower(t)
					}()
				} else {
					close(stopped)
				}
				_, err := workspace.Restore(t.Context(), dir, changes, r)
				<-stopped
				if last {
					if err != nil {
						t.Fatal(err)
					}
					d.losePower(t)
				}
				d.comeBack(t)
				for path := range old {
					b, err := os.ReadFile(filepath.Join(dir, path))
					if err != nil || string(b) != old[path] && string(b) != now[path] || last && string(b) != now[path] {
						t.Fatalf("round %d: %s has %d bytes, %v", round, path, len(b), err)
					}
				}
				for range 2 { // it may go on first, or go back at once
					if round%2 == 0 {
						if out := k.restore(t, dir, first, other); len(out.Conflicts) > 0 {
							t.Fatalf("round %d: %v", round, out.Conflicts)
						}
					}
					if out := k.restore(t, dir, other, first); len(out.Conflicts) > 0 || k.tree(t, dir) != first {
						t.Fatalf("round %d: %v", round, out.Conflicts)
					}
				}
			}
		})
	}
}
