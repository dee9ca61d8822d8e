package workspace_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
)

// kept are blocks in memory.
type kept map[protocol.Link][]byte

func (k kept) read(l protocol.Link) ([]byte, error) {
	b, ok := k[l]
	if !ok {
		return nil, protocol.ErrNotFound
	}
	return b, nil
}

// taking is one without limits.
func (k kept) taking(t testing.TB, globs ...string) workspace.Taking {
	t.Helper()
	g, err := tree.NewGlobs(globs)
	if err != nil {
		t.Fatal(err)
	}
	return workspace.Taking{Choose: g.Top(), MaxSize: 1 << 40, MaxTotal: 1 << 40, MaxFiles: 1 << 30, Put: func(b tree.Block) error {
		k[b.Link] = b.Data
		return nil
	}}
}

// items are what a taking takes.
func (k kept) items(t testing.TB, dir string, x workspace.Taking) []tree.Item {
	t.Helper()
	root, n, err := workspace.Take(t.Context(), dir, x)
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		if root.Defined() || len(k) > 0 {
			t.Errorf("nothing was taken, and the root is %q with %d blocks", root, len(k))
		}
		return nil
	}
	var out []tree.Item
	for it, err := range tree.Walk(k.read, root) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, it)
	}
	if len(out) != n {
		t.Errorf("%d entries, and %d were counted", len(out), n)
	}
	return out
}

func (k kept) open(it tree.Item) (io.ReadCloser, error) {
	r, err := tree.Open(k.read, it.Entry)
	return io.NopCloser(r), err
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
		t.Fatal(err)
	}
}

func shown(items []tree.Item) []string {
	var out []string
	for _, it := range items {
		out = append(out, fmt.Sprintf("%s %s %d %s", it.Path, it.Mode, it.Size, it.Why))
	}
	return out
}

func TestWhatIsNoFileIsNeverOpened(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "plain", "text")
	put(t, dir, "sub/run.sh", "#!/bin/sh")
	put(t, dir, ".git/config", "[core]")
	put(t, dir, ".wf/runs/x", "x")
	put(t, dir, "sub/.GIT/hooks/pre-commit", "x")
	put(t, dir, "bad\xffname", "x")
	put(t, dir, ".hidden", "x")
	if err := errors.Join(os.Chmod(filepath.Join(dir, "sub/run.sh"), 0o755), os.Symlink("/etc/passwd", filepath.Join(dir, "out")),
		os.Symlink("sub", filepath.Join(dir, "todir")), os.Symlink("loop", filepath.Join(dir, "loop")), os.Mkdir(filepath.Join(dir, "empty"), 0o777),
		os.Link(filepath.Join(dir, "plain"), filepath.Join(dir, "hard")), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	k := kept{}
	want := []string{".hidden file 1 ", `bad\xffname omitted 0 name`, "hard file 4 ", "loop link 4 ", "out link 11 ", "pipe omitted 0 special", "plain file 4 ",
		"sock omitted 0 special", "sub/run.sh exec 9 ", "todir link 3 "}
	if diff := cmp.Diff(want, shown(k.items(t, dir, k.taking(t, "**")))); diff != "" {
		t.Error(diff)
	}
	k = kept{}
	if got := k.items(t, dir, k.taking(t, "none/**", "*.html")); got != nil {
		t.Errorf("%v", got)
	}
	k = kept{} // a directory is not entered through a link
	if got := k.items(t, dir, k.taking(t, "todir/**")); got != nil {
		t.Errorf("%v", got)
	}
}

func TestWhatMayNotBeReadIsOmitted(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := t.TempDir()
	put(t, dir, "secret", "x")
	put(t, dir, "closed/x", "x")
	if err := errors.Join(os.Chmod(filepath.Join(dir, "secret"), 0), os.Chmod(filepath.Join(dir, "closed"), 0)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "closed"), 0o700)
	k := kept{}
	if diff := cmp.Diff([]string{"closed omitted 0 denied", "secret omitted 0 denied"}, shown(k.items(t, dir, k.taking(t, "**")))); diff != "" {
		t.Error(diff)
	}
}

func TestALimitNamesTheFileThatIsTooMuch(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		put(t, dir, fmt.Sprintf("f%d", i), strings.Repeat("x", 100))
	}
	for _, c := range []struct {
		size, total int64
		files       int
		key, path   string
	}{
		{100, 1000, 10, "", ""},
		{99, 1000, 10, "max_size", "f0"},
		{100, 999, 10, "max_total", "f9"},
		{100, 1000, 9, "max_files", "f9"},
	} {
		x := kept{}.taking(t, "**")
		x.MaxSize, x.MaxTotal, x.MaxFiles = c.size, c.total, c.files
		_, n, err := workspace.Take(t.Context(), dir, x)
		over, _ := errors.AsType[*workspace.LimitError](err)
		switch {
		case c.key == "" && (err != nil || n != 10):
			t.Errorf("at the limits: %d, %v", n, err)
		case c.key != "" && (over == nil || over.Key != c.key || over.Path != c.path):
			t.Errorf("beyond %s: %v", c.key, err)
		}
	}
}

// finder finds a word, also where it is written in pieces.
type finder struct{ bytes.Buffer }

func (f *finder) Close() string {
	if strings.Contains(f.String(), "hunter2") {
		return "password"
	}
	return ""
}

func TestASecretLeavesNoBlock(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "small", "my hunter2")
	put(t, dir, "large", strings.Repeat("x", 300<<10)+"hunter2")
	put(t, dir, "fine", "my")
	if err := os.Symlink("/tmp/hunter2", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	k := kept{}
	x := k.taking(t, "**")
	x.Scan = func() workspace.Scanner { return &finder{} }
	if diff := cmp.Diff([]string{"fine file 2 ", "large omitted 307207 secret", "link omitted 0 secret", "small omitted 10 secret"}, shown(k.items(t, dir, x))); diff != "" {
		t.Error(diff)
	}
	if len(k) != 2 { // the file and the directory
		t.Errorf("%d blocks were kept", len(k))
	}
}

// touched is a scanner that changes the file which is read.
type touched struct {
	path string
	left *int
}

func (touched) Write(b []byte) (int, error) { return len(b), nil }

func (x touched) Close() string {
	if *x.left--; *x.left >= 0 {
		f, err := os.OpenFile(x.path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			panic(err)
		}
		fmt.Fprint(f, "more")
		f.Close()
	}
	return ""
}

func TestAFileThatChangesIsReadAgainThreeTimes(t *testing.T) {
	for changes, want := range map[int]string{0: "f file 4 ", 1: "f file 8 ", 3: "f file 16 ", 4: "f omitted 0 unstable"} {
		dir := t.TempDir()
		put(t, dir, "f", "text")
		k := kept{}
		x := k.taking(t, "**")
		x.Scan = func() workspace.Scanner { return touched{filepath.Join(dir, "f"), &changes} }
		if got := shown(k.items(t, dir, x)); !slices.Equal(got, []string{want}) {
			t.Errorf("have %q, want %q", got, want)
		}
	}
}

// git lists the same files, links and modes, and the same content by its own hashes.
func TestGitSeesTheSameTree(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "B", "ü", "e\u0301", "\u202e", " ", "-x", "'", `"`, "\t", "\n", "\\", "日本", "..x", "x..", "*", "[a]", "deep", ".dot"}
	for range 400 {
		var path string
		for range 1 + r.IntN(6) {
			path = filepath.Join(path, "n"+pieces[r.IntN(len(pieces))]+pieces[r.IntN(len(pieces))])
		}
		full := filepath.Join(dir, path)
		if os.MkdirAll(filepath.Dir(full), 0o777) != nil {
			continue // a file lies in the way
		}
		switch r.IntN(5) {
		case 0:
			_ = os.Symlink(pieces[r.IntN(len(pieces))], full)
		case 1:
			_ = os.WriteFile(full, []byte(path), 0o755)
		default:
			_ = os.WriteFile(full, bytes.Repeat([]byte(path), r.IntN(5000)), 0o644)
		}
	}
	git := func(stdin string, args ...string) string {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir, "-c", "core.quotepath=off", "-c", "core.autocrlf=false"}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		c.Stdin = strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("", "init", "-q")
	git("", "add", "-A")
	want := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(git("", "ls-tree", "-r", "-z", strings.TrimSpace(git("", "write-tree"))), "\x00"), "\x00") {
		meta, path, _ := strings.Cut(line, "\t")
		f := strings.Fields(meta)
		want[path] = f[0] + " " + f[2]
	}
	if len(want) < 200 {
		t.Fatalf("git has %d files", len(want))
	}
	k := kept{}
	modes := map[tree.Mode]string{tree.File: "100644", tree.Exec: "100755", tree.Link: "120000"}
	got := map[string]string{}
	for _, it := range k.items(t, dir, k.taking(t, "**")) {
		f, err := k.open(it)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		got[it.Path] = modes[it.Mode] + " " + blobOf(content)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	to := t.TempDir()
	laid, err := workspace.Lay(to, k.items(t, dir, k.taking(t, "**")), workspace.Laying{Open: k.open})
	if err != nil || len(laid.Skipped) > 0 {
		t.Fatalf("%+v, %v", laid, err)
	}
	again := kept{}
	if diff := cmp.Diff(shown(k.items(t, dir, k.taking(t, "**"))), shown(again.items(t, to, again.taking(t, "**")))); diff != "" {
		t.Error(diff)
	}
	for l := range again {
		if k[l] == nil {
			t.Errorf("block %s is another one after it was written and read", l)
		}
	}
}

func TestADirectoryOf50000EntriesIsTaken(t *testing.T) {
	dir := t.TempDir()
	for i := range 50_000 {
		if err := os.Symlink("x", filepath.Join(dir, fmt.Sprintf("l%05d", i))); err != nil { // quicker to make than a file
			t.Fatal(err)
		}
	}
	k := kept{}
	if n := len(k.items(t, dir, k.taking(t, "**"))); n != 50_000 {
		t.Errorf("%d entries", n)
	}
}

func TestWhatIsWrittenStaysInItsDirectory(t *testing.T) {
	outside, to := t.TempDir(), t.TempDir()
	put(t, outside, "mine", "before")
	put(t, to, "here", "before")
	if err := errors.Join(os.Symlink(outside, filepath.Join(to, "way")), os.Symlink(filepath.Join(outside, "mine"), filepath.Join(to, "toFile")), os.Mkdir(filepath.Join(to, "dir"), 0o777)); err != nil {
		t.Fatal(err)
	}
	k := kept{}
	item := func(path string, mode tree.Mode, text string) tree.Item {
		b := tree.Raw([]byte(text))
		k[b.Link] = b.Data
		return tree.Item{Path: path, Entry: tree.Entry{Name: filepath.Base(path), Mode: mode, Link: b.Link, Size: int64(len(text))}}
	}
	lay := func(force bool, items ...tree.Item) (workspace.Laid, error) {
		return workspace.Lay(to, items, workspace.Laying{Open: k.open, Force: force})
	}
	for _, path := range []string{"../x", "/etc/x", "a/../../x", "a//b", "", ".git/config", "a/.GIT/config", ".wf/x", "a\x00b"} {
		if _, err := lay(true, item(path, tree.File, "x")); !errors.Is(err, protocol.ErrInvalidBlock) {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, c := range []struct {
		path  string
		force bool
	}{{"here", false}, {"toFile", false}, {"way", false}, {"way/x", false}, {"way/x", true}, {"way/mine", true}, {"here/x", true}, {"dir", true}, {"dir", false}} {
		if _, err := lay(c.force, item("first", tree.File, "x"), item(c.path, tree.File, "after")); !errors.Is(err, protocol.ErrExists) {
			t.Errorf("%s, force %v: %v", c.path, c.force, err)
		}
		if !c.force && c.path != "way/x" {
			if _, err := os.Lstat(filepath.Join(to, "first")); err == nil {
				t.Errorf("%s: something was written before it was refused", c.path)
			}
		}
		os.Remove(filepath.Join(to, "first"))
	}
	for _, name := range []string{"here", "toFile"} { // what lies there is replaced, not what it leads to
		if _, err := lay(true, item(name, tree.Exec, "after")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		info, err := os.Lstat(filepath.Join(to, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o100 == 0 {
			t.Errorf("%s is %v, %v", name, info.Mode(), err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(outside, "mine")); err != nil || string(b) != "before" {
		t.Errorf("outside lies %q, %v", b, err)
	}
	got, err := lay(false, item("l/abs", tree.Link, "/etc/passwd"), item("l/in", tree.Link, "../here"), item("l/out", tree.Link, "../../x"), item("l/z", tree.Omitted, ""))
	if err != nil || got.Files != 1 || len(got.Skipped) != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	// Two names of one file, as a file system has that ignores case.
	if _, err := lay(true, item("same", tree.File, "1"), item("same", tree.File, "2")); !errors.Is(err, protocol.ErrExists) || !strings.Contains(err.Error(), "same") {
		t.Errorf("%v", err)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside lie %v, %v", entries, err)
	}
}

func TestContentIsProvedBeforeItHasItsName(t *testing.T) {
	for _, n := range []int{10, 200 << 10} {
		right := bytes.Repeat([]byte("x"), n)
		k := kept{}
		l, err := tree.Content(bytes.NewReader(right), int64(n), k.taking(t, "x").Put)
		if err != nil {
			t.Fatal(err)
		}
		it := tree.Item{Path: "f", Entry: tree.Entry{Name: "f", Mode: tree.File, Link: l, Size: int64(n)}}
		for what, sent := range map[string][]byte{"other": append(right[:n-1:n-1], 'y'), "short": right[:n-1], "long": append(right[:n:n], 'x')} {
			to := t.TempDir()
			_, err := workspace.Lay(to, []tree.Item{it}, workspace.Laying{Open: func(tree.Item) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(sent)), nil }})
			if left, look := os.ReadDir(to); !errors.Is(err, protocol.ErrCorrupt) || look != nil || len(left) > 0 {
				t.Errorf("%d bytes, %s: %v, and there lies %v", n, what, err, left)
			}
		}
	}
}

func TestATakingThatIsCancelledEnds(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "f", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := workspace.Take(ctx, dir, kept{}.taking(t, "**")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func BenchmarkTake50000(b *testing.B) {
	dir := b.TempDir()
	for i := range 50_000 {
		put(b, dir, fmt.Sprintf("d%03d/f%05d", i%200, i), fmt.Sprintf("file %d\n%s", i, strings.Repeat("text ", 100)))
	}
	x := kept{}.taking(b, "**")
	x.Put = func(tree.Block) error { return nil }
	for b.Loop() {
		if _, n, err := workspace.Take(b.Context(), dir, x); err != nil || n != 50_000 {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkTakeSparse(b *testing.B) {
	dir := b.TempDir()
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<30), f.Close()); err != nil {
		b.Fatal(err)
	}
	x := kept{}.taking(b, "**")
	x.Put = func(tree.Block) error { return nil }
	b.SetBytes(1 << 30)
	for b.Loop() {
		if _, _, err := workspace.Take(b.Context(), dir, x); err != nil {
			b.Fatal(err)
		}
	}
}

// blobOf is the name that git gives to content.
func blobOf(content []byte) string {
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
}
