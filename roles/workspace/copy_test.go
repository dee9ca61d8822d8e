package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wf/protocol/tree"
	"wf/roles/workspace"
)

func allOf(t testing.TB, dir string, carry ...string) tree.Chooser {
	t.Helper()
	globs, err := tree.NewGlobs(carry)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tree.NewIgnored(workspace.RulesOf(dir), globs, tree.Globs{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestC04ACopyIsAsTheOriginal(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	put(t, from, "a", "a")
	put(t, from, "d/e/run.sh", "#!")
	put(t, from, "a\xffb", "not UTF-8")
	put(t, from, ".gitignore", "out\nmodules\n")
	put(t, from, "out/o", "o")
	put(t, from, "modules/m", "m")
	put(t, from, ".git/config", "c")
	put(t, from, "d/.WF/x", "x")
	then := time.Unix(1_000_000_000, 5000)
	for _, err := range []error{os.Chmod(filepath.Join(from, "d/e/run.sh"), 0o754), os.Chmod(filepath.Join(from, "a"), 0o400), os.Symlink("/etc/passwd", filepath.Join(from, "l")),
		os.Symlink("/etc", filepath.Join(from, "dirlink")), unix.Mkfifo(filepath.Join(from, "pipe"), 0o600), os.Chtimes(filepath.Join(from, "d/e/run.sh"), then, then)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := workspace.Copy(context.Background(), from, to, workspace.Copying{Choose: allOf(t, from, "modules"), Max: 1 << 20})
	if err != nil || got.Files != 7 || got.Bytes+got.Shared != 1+2+9+12+1 {
		t.Errorf("%+v, %v", got, err)
	}
	within := filepath.Join(from, "d/copies/to")
	if err := os.MkdirAll(within, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, from, "d/copies/other", "left out")
	again, err := workspace.Copy(context.Background(), from, within, workspace.Copying{Choose: allOf(t, from, "modules"), Max: 1 << 20, Without: filepath.Dir(within)})
	if again != got || err != nil {
		t.Errorf("into a directory within it: %+v, %v", again, err)
	}
	var has []string
	err = filepath.WalkDir(to, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(to, path)
			info, err := e.Info()
			if err != nil {
				return err
			}
			has = append(has, fmt.Sprintf("%s %s", rel, info.Mode()))
		}
		return err
	})
	want := ".gitignore -rw-r--r--, a -r--------, a\xffb -rw-r--r--, d/e/run.sh -rwxr-xr--, dirlink Lrwxrwxrwx, l Lrwxrwxrwx, modules/m -rw-r--r--"
	if strings.Join(has, ", ") != want || err != nil {
		t.Errorf("%q, %v", has, err)
	}
	if info, err := os.Stat(filepath.Join(to, "d/e/run.sh")); err != nil || !info.ModTime().Equal(then) {
		t.Errorf("%v, %v", info.ModTime(), err)
	}
	if l, err := os.Readlink(filepath.Join(to, "dirlink")); l != "/etc" || err != nil {
		t.Errorf("%q, %v", l, err)
	}
}

func TestC04ACopyIsBounded(t *testing.T) {
	from := t.TempDir()
	for i := range 4 {
		put(t, from, fmt.Sprint("f", i), strings.Repeat("x", 1000))
	}
	for most, ok := range map[int64]bool{4000: true, 3999: false} {
		to := t.TempDir()
		got, err := workspace.Copy(context.Background(), from, to, workspace.Copying{Choose: allOf(t, from), Max: most})
		if got.Shared > 0 {
			t.Skip("the file system shares blocks")
		}
		limit, refused := errors.AsType[*workspace.CopyError](err)
		left, rerr := os.ReadDir(to)
		if rerr != nil || refused == ok || ok && (err != nil || got.Bytes != 4000) {
			t.Errorf("up to %d: %+v, %v, %v", most, got, err, rerr)
		}
		if !ok && (limit.Files != 4 || limit.Bytes != 4000 || len(left) > 1) {
			t.Errorf("up to %d: %+v, and %d files are left", most, limit, len(left))
		}
	}
	deep := t.TempDir()
	if err := os.MkdirAll(filepath.Join(deep, strings.Repeat("d/", tree.DepthMax+1)), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.Copy(context.Background(), deep, t.TempDir(), workspace.Copying{Choose: allOf(t, deep), Max: 1}); err == nil || !strings.Contains(err.Error(), "directories within each other") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := workspace.Copy(ctx, from, t.TempDir(), workspace.Copying{Choose: allOf(t, from), Max: 1 << 20}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Files and directories that change places with links while they are copied lead nowhere else.
func TestC04ACopyFollowsNoLinkThatAppears(t *testing.T) {
	from, secret := t.TempDir(), t.TempDir()
	put(t, secret, "key", "secret")
	put(t, secret, "f", "secret")
	for i := range 50 {
		put(t, from, fmt.Sprintf("d%d/f", i), "plain")
		put(t, from, fmt.Sprintf("g%d", i), "plain")
	}
	done := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			d, g := filepath.Join(from, fmt.Sprint("d", i%50)), filepath.Join(from, fmt.Sprint("g", i%50))
			_ = os.Rename(d, d+".was")
			_ = os.Symlink(secret, d)
			_ = os.Remove(g)
			_ = os.Symlink(filepath.Join(secret, "key"), g)
			_ = os.Remove(d)
			_ = os.Rename(d+".was", d)
			_ = os.Remove(g)
			_ = os.WriteFile(g, []byte("plain"), 0o644)
		}
	})
	for range 10 {
		to := t.TempDir()
		if _, err := workspace.Copy(context.Background(), from, to, workspace.Copying{Choose: allOf(t, from), Max: 1 << 20}); err != nil {
			t.Error(err)
			break
		}
		err := filepath.WalkDir(to, func(path string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), "secret") {
					t.Errorf("%s: %q, %v", path, b, err)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	close(done)
	swaps.Wait()
}

// A copy of 50,000 files of 6 KB.
func BenchmarkC04Copy50000(b *testing.B) {
	from := b.TempDir()
	text := []byte(strings.Repeat("0123456789abcdef", 6<<10/16))
	for i := range 50_000 {
		dir := filepath.Join(from, fmt.Sprint("d", i/100))
		if i%100 == 0 {
			if err := os.Mkdir(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), text, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		to := b.TempDir()
		if _, err := workspace.Copy(context.Background(), from, to, workspace.Copying{Choose: allOf(b, from), Max: 1 << 30}); err != nil {
			b.Fatal(err)
		}
	}
}
