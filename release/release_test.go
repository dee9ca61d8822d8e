package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// small is a release of programs that are none.
func small() *release {
	return &release{
		version: "1.2.0", revision: "0123456789abcdef", when: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), maintainer: "Ada <ada@example.org>",
		texts: []file{
			{name: "README.md", mode: 0o644, data: []byte("# wf\n")},
			{name: "CHANGELOG.md", mode: 0o644, data: []byte("# Changelog\n")},
			{name: "docs/adr/0001-a.md", mode: 0o644, data: []byte("# 1\n")},
			{name: "man/man1/wf.1", mode: 0o644, data: []byte(".TH WF 1\n")},
			{name: "completions/wf.bash", mode: 0o644, data: []byte("bash\n")},
			{name: "completions/_wf", mode: 0o644, data: []byte("zsh\n")},
			{name: "completions/wf.fish", mode: 0o644, data: []byte("fish\n")},
		},
		programs: map[platform][]byte{
			{"linux", "amd64"}:  []byte("program of amd64"),
			{"linux", "arm64"}:  []byte("program of arm64!"), // of odd length
			{"darwin", "arm64"}: []byte("program of a Mac"),
		},
	}
}

func made(t *testing.T, r *release) map[string][]byte {
	t.Helper()
	products, err := r.products()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, p := range products {
		out[p.name] = p.data
	}
	return out
}

// unpacked reads a tar archive: the files, and each line as "mode owner name".
func unpacked(t *testing.T, data []byte, when time.Time) (map[string][]byte, []string) {
	t.Helper()
	if r, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
		if r.Name != "" || !r.ModTime.IsZero() {
			t.Error("the compressed archive has a name or a time of its own")
		}
		if data, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	files, lines := map[string][]byte{}, []string{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = body
		}
		if !h.ModTime.Equal(when) || h.Uname+h.Gname != "" || h.Uid != h.Gid {
			t.Errorf("%s has the time %v and the owner %d:%d %s:%s", h.Name, h.ModTime, h.Uid, h.Gid, h.Uname, h.Gname)
		}
		lines = append(lines, fmt.Sprintf("%o %d %s", h.Mode, h.Uid, h.Name))
	}
	for i, line := range lines { // what a directory holds comes behind it
		name := strings.SplitN(line, " ", 3)[2]
		if dir := above(name); dir != "" && !slices.ContainsFunc(lines[:i], func(l string) bool { return strings.HasSuffix(l, " "+dir) }) {
			t.Errorf("%s comes before its directory", name)
		}
	}
	return files, lines
}

func TestTheSameReleaseHasTheSameBytes(t *testing.T) {
	first := made(t, small())
	again := small()
	slices.Reverse(again.texts)
	for name, data := range made(t, again) {
		if !bytes.Equal(first[name], data) {
			t.Errorf("%s is made anew with other bytes", name)
		}
	}
	want := []string{"SHA256SUMS", "wf_1.2.0_amd64.deb", "wf_1.2.0_arm64.deb", "wf_1.2.0_darwin_arm64.tar.gz",
		"wf_1.2.0_linux_amd64.tar.gz", "wf_1.2.0_linux_arm64.tar.gz", "wf_1.2.0_oci.tar"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(first))); diff != "" {
		t.Error(diff)
	}
}

func TestTheSumsAreThoseOfAllProducts(t *testing.T) {
	all := made(t, small())
	var want strings.Builder
	for line := range strings.Lines(string(all["SHA256SUMS"])) {
		name := line[66 : len(line)-1]
		fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(all[name]), name)
	}
	if diff := cmp.Diff(want.String(), string(all["SHA256SUMS"])); diff != "" || strings.Count(want.String(), "\n") != len(all)-1 {
		t.Error(diff)
	}
}

func TestAnArchiveIsOneDirectory(t *testing.T) {
	r := small()
	files, lines := unpacked(t, made(t, r)["wf_1.2.0_linux_arm64.tar.gz"], r.when)
	want := []string{
		"755 0 wf_1.2.0_linux_arm64/",
		"644 0 wf_1.2.0_linux_arm64/CHANGELOG.md",
		"644 0 wf_1.2.0_linux_arm64/README.md",
		"755 0 wf_1.2.0_linux_arm64/completions/",
		"644 0 wf_1.2.0_linux_arm64/completions/_wf",
		"644 0 wf_1.2.0_linux_arm64/completions/wf.bash",
		"644 0 wf_1.2.0_linux_arm64/completions/wf.fish",
		"755 0 wf_1.2.0_linux_arm64/docs/",
		"755 0 wf_1.2.0_linux_arm64/docs/adr/",
		"644 0 wf_1.2.0_linux_arm64/docs/adr/0001-a.md",
		"755 0 wf_1.2.0_linux_arm64/man/",
		"755 0 wf_1.2.0_linux_arm64/man/man1/",
		"644 0 wf_1.2.0_linux_arm64/man/man1/wf.1",
		"755 0 wf_1.2.0_linux_arm64/systemd/",
		"644 0 wf_1.2.0_linux_arm64/systemd/wf-server.service",
		"644 0 wf_1.2.0_linux_arm64/systemd/wf.service",
		"755 0 wf_1.2.0_linux_arm64/wf",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	if got := string(files["wf_1.2.0_linux_arm64/wf"]); got != "program of arm64!" {
		t.Errorf("the program is %q", got)
	}
	_, lines = unpacked(t, made(t, r)["wf_1.2.0_darwin_arm64.tar.gz"], r.when)
	if slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "systemd") }) {
		t.Error("the archive for a Mac has a unit of systemd")
	}
}

func TestAFileIsNotPackedTwice(t *testing.T) {
	if _, err := pack([]file{{name: "a"}, {name: "a"}}, time.Time{}); err == nil {
		t.Error("two files of one name were packed")
	}
}

func TestTheVersionIsThatOfGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	for _, key := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		t.Setenv(key, "")
		os.Unsetenv(key)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	t.Setenv("GIT_COMMITTER_DATE", "2026-01-31T12:00:00Z")
	ctx := t.Context()
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	is := func(given, epoch, version string, seconds int64) {
		t.Helper()
		r, err := describe(ctx, given, epoch)
		if err != nil || !strings.HasPrefix(r.version, version) || r.when.Unix() != seconds {
			t.Errorf("%+v, %v; want version %s of %d", r, err, version, seconds)
		}
	}
	if _, err := describe(ctx, "", ""); err == nil || !strings.Contains(err.Error(), "-version") {
		t.Errorf("outside of a repository: %v", err)
	}
	is("v1.0.0", "7", "1.0.0", 7)
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "first")
	is("", "", "devel-", 1769860800)
	git("tag", "other")
	is("", "", "devel-", 1769860800)
	git("tag", "v0.9.0")
	is("", "", "0.9.0", 1769860800)
	git("commit", "-q", "--allow-empty", "-m", "second")
	is("", "", "0.9.0-1-g", 1769860800)
	is("2.0.0-rc.1", "3", "2.0.0-rc.1", 3)
	for _, bad := range []string{"1.0 -X", "1.0;id", "a/b", "\x00"} {
		if _, err := describe(ctx, bad, ""); err == nil {
			t.Errorf("the version %q was taken", bad)
		}
	}
	if _, err := describe(ctx, "1.0.0", "yesterday"); err == nil {
		t.Error("a time that is no number was taken")
	}
}

// What make release left in WF_RELEASE is whole, and its program for this machine starts.
func TestTheProductsInADirectory(t *testing.T) {
	dir := os.Getenv("WF_RELEASE")
	if dir == "" {
		t.Skip("WF_RELEASE names no directory of products")
	}
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	toolchain, err := pinned(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	started := false
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || fmt.Sprintf("%x", sha256.Sum256(data)) != sum {
			t.Errorf("%s: %v, or another hash", name, err)
		}
		version, ours := strings.CutSuffix(name, "_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz")
		if !ours {
			continue
		}
		version = strings.TrimPrefix(version, "wf_")
		out := t.TempDir()
		if said, err := exec.Command("tar", "-xzf", filepath.Join(dir, name), "-C", out).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		cmd := exec.Command(filepath.Join(out, strings.TrimSuffix(name, ".tar.gz"), "wf"), "version")
		cmd.Dir = out
		said, err := cmd.CombinedOutput()
		if err != nil || !strings.HasPrefix(string(said), "wf "+version+" ("+toolchain+", ") {
			t.Errorf("wf version: %v\n%s", err, said)
		}
		started = true
	}
	if !started {
		t.Errorf("%s holds no program for %s/%s", dir, runtime.GOOS, runtime.GOARCH)
	}
}
