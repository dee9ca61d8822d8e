package cas

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"wf/protocol"
)

// However much room is left on the disk of a backup, one that does not fit names the disk and leaves the one before; when there
// is room, the next one is whole.
func TestABackupOnAFullDiskLeavesTheOneBefore(t *testing.T) {
	mnt := t.TempDir()
	if err := unix.Mount("tmpfs", mnt, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("needs root to mount a small tmpfs: ", err)
	}
	defer func() {
		if err := unix.Unmount(mnt, 0); err != nil {
			t.Error(err)
		}
	}()
	s := openSample(t)
	sampleRunOf(t, s, "one", 20, func(v int) string { return fmt.Sprint("one", v, randomText(2000)) })
	first := t.TempDir()
	must(Backup(t.Context(), s, first, BackupOptions{}))
	was := everything(t, s)
	sampleRunOf(t, s, "two", 20, func(v int) string {
		if v == 9 {
			return fmt.Sprint("two", randomText(inlineMax+20000)) // a blob file
		}
		return fmt.Sprint("two", v, randomText(4000))
	})
	now := everything(t, s)
	dir, filler := filepath.Join(mnt, "backup"), filepath.Join(mnt, "filler")
	page := os.Getpagesize()
	for free, full := 0, 0; ; free += max(1, free/6) {
		if err := os.CopyFS(dir, os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
		fillBut(t, filler, free*page)
		_, err := Backup(t.Context(), s, dir, BackupOptions{Gentle: free%2 == 1})
		if err == nil {
			if full < 10 {
				t.Errorf("%d pages are enough", free)
			}
			break
		}
		full++
		if !errors.Is(err, protocol.ErrDiskFull) || !strings.Contains(err.Error(), dir) {
			t.Fatalf("%d pages are left: %v", free, err)
		}
		must(VerifyBackup(t.Context(), dir))
		if got := everything(t, restored(t, dir)); !maps.Equal(got, was) {
			t.Fatalf("%d pages are left: %v, want %v", free, got, was)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		must(Backup(t.Context(), s, dir, BackupOptions{}))
		must(VerifyBackup(t.Context(), dir))
		if got := everything(t, restored(t, dir)); !maps.Equal(got, now) {
			t.Fatalf("%d pages were left: then %v, want %v", free, got, now)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// fillBut fills the disk of a file but for so many bytes.
func fillBut(t *testing.T, filler string, free int) {
	t.Helper()
	f := must(os.Create(filler))
	defer f.Close()
	size := int64(0)
	for chunk := bytes.Repeat([]byte{1}, 4096); ; {
		n, err := f.Write(chunk)
		size += int64(n)
		if err != nil {
			if !errors.Is(err, unix.ENOSPC) {
				t.Fatal(err)
			}
			break
		}
	}
	if err := f.Truncate(max(0, size-int64(free))); err != nil {
		t.Fatal(err)
	}
}
