package workspace_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"wf/roles/workspace"
)

// While files are written, another process turns their directory into a link and back.
func TestALinkThatAppearsIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/.git/config", "old")
	write(t, dir+"/real/x", "")
	if err := os.Symlink(".git", dir+"/other"); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, dir+"/real", unix.AT_FDCWD, dir+"/other", unix.RENAME_EXCHANGE); err != nil {
				stopped <- err
				return
			}
		}
	}()
	written := 0
	for range 2_000 {
		p, err := workspace.Find(dir, "", "real/config", workspace.Write)
		if err == nil {
			err = p.Replace("new")
			p.Close()
		}
		if err == nil {
			written++
		}
		if b, err := os.ReadFile(dir + "/.git/config"); err != nil || string(b) != "old" {
			t.Fatalf("after %d writes .git/config is %q (%v)", written, b, err)
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Skip("no exchange of names on this file system: ", err)
	}
	t.Logf("%d of 2,000 calls wrote, the others met the link", written)
}
