package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// members reads an ar archive.
func members(t *testing.T, data []byte) (names []string, content map[string][]byte) {
	t.Helper()
	rest, found := bytes.CutPrefix(data, []byte("!<arch>\n"))
	if !found {
		t.Fatal("it is no ar archive")
	}
	content = map[string][]byte{}
	for len(rest) > 0 {
		header := rest[:60]
		size, err := strconv.Atoi(strings.TrimSpace(string(header[48:58])))
		if err != nil || string(header[58:]) != "`\n" {
			t.Fatalf("a header %q: %v", header, err)
		}
		name := strings.TrimSpace(string(header[:16]))
		names, content[name] = append(names, name), rest[60:60+size]
		rest = rest[60+size+size%2:]
	}
	return names, content
}

func TestADebianPackageHasItsFilesWhereDebianHasThem(t *testing.T) {
	r := small()
	names, content := members(t, made(t, r)["wf_1.2.0_arm64.deb"])
	if diff := cmp.Diff([]string{"debian-binary", "control.tar.gz", "data.tar.gz"}, names); diff != "" {
		t.Fatal(diff)
	}
	if string(content["debian-binary"]) != "2.0\n" {
		t.Errorf("debian-binary is %q", content["debian-binary"])
	}
	files, lines := unpacked(t, content["data.tar.gz"], r.when)
	regular := slices.DeleteFunc(lines, func(l string) bool { return strings.HasSuffix(l, "/") })
	want := []string{
		"755 0 ./usr/bin/wf",
		"644 0 ./usr/lib/systemd/system/wf-server.service",
		"644 0 ./usr/lib/systemd/user/wf.service",
		"644 0 ./usr/share/bash-completion/completions/wf",
		"644 0 ./usr/share/doc/wf/CHANGELOG.md.gz",
		"644 0 ./usr/share/doc/wf/README.md",
		"644 0 ./usr/share/doc/wf/changelog.gz",
		"644 0 ./usr/share/doc/wf/copyright",
		"644 0 ./usr/share/doc/wf/docs/adr/0001-a.md",
		"644 0 ./usr/share/fish/vendor_completions.d/wf.fish",
		"644 0 ./usr/share/lintian/overrides/wf",
		"644 0 ./usr/share/man/man1/wf.1.gz",
		"644 0 ./usr/share/zsh/vendor-completions/_wf",
	}
	if diff := cmp.Diff(want, regular); diff != "" {
		t.Error(diff)
	}
	size := 0
	for _, data := range files {
		size += (len(data) + 1023) / 1024
	}
	controls, _ := unpacked(t, content["control.tar.gz"], r.when)
	for _, line := range []string{"Package: wf\n", "\nVersion: 1.2.0\n", "\nArchitecture: arm64\n", "\nMaintainer: Ada <ada@example.org>\n", fmt.Sprintf("\nInstalled-Size: %d\n", size)} {
		if !strings.Contains(string(controls["./control"]), line) {
			t.Errorf("control lacks %q:\n%s", line, controls["./control"])
		}
	}
	if n := strings.Count(string(controls["./md5sums"]), "\n"); n != len(want) {
		t.Errorf("md5sums has %d lines for %d files", n, len(want))
	}
	for line := range strings.Lines(string(controls["./md5sums"])) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if fmt.Sprintf("%x", md5.Sum(files["./"+name])) != sum {
			t.Errorf("md5sums has another digest of %s", name)
		}
	}
}

// Debian's own tools, where they are installed.
func TestDebianReadsThePackage(t *testing.T) {
	deb := filepath.Join(t.TempDir(), "wf_1.2.0_amd64.deb")
	if err := os.WriteFile(deb, made(t, small())["wf_1.2.0_amd64.deb"], 0o644); err != nil {
		t.Fatal(err)
	}
	tried := false
	run := func(name string, args ...string) string {
		t.Helper()
		if _, err := exec.LookPath(name); err != nil {
			t.Log(err)
			return ""
		}
		tried = true
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Errorf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	if said := run("dpkg-deb", "--field", deb, "Package", "Version"); said != "" && said != "Package: wf\nVersion: 1.2.0\n" {
		t.Errorf("dpkg-deb reads %q", said)
	}
	root := t.TempDir()
	if run("dpkg-deb", "--extract", deb, root); tried {
		if got, err := os.ReadFile(filepath.Join(root, "usr/bin/wf")); err != nil || string(got) != "program of amd64" {
			t.Errorf("the program is %q, %v", got, err)
		}
	}
	run("lintian", "--fail-on", "error", "--suppress-tags", "unstripped-binary-or-object,no-manual-page", deb)
	if !tried {
		t.Skip("no tool of Debian is installed")
	}
}

func TestDebianOrdersTheVersions(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip(err)
	}
	early, late := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC), time.Date(2026, 1, 31, 18, 0, 0, 0, time.UTC)
	ordered := []string{
		debVersion("devel-ffff23456789", early),
		debVersion("devel-012345678901-dirty", late),
		debVersion("0.9.0", early),
		debVersion("1.0.0-rc.1", late),
		debVersion("1.0.0-rc.2", early),
		debVersion("1.0.0", early),
		debVersion("1.0.0-dirty", early),
		debVersion("1.0.1", early),
		debVersion("1.0.1-2-g0123456789ab", early),
		debVersion("1.0.1-10-g0123456789ab", early),
		debVersion("1.0.2", early),
	}
	for i, later := range ordered[1:] {
		if out, err := exec.Command("dpkg", "--compare-versions", ordered[i], "lt", later).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s does not come before %s: %v %s", ordered[i], later, err, out)
		}
	}
}

// In a mount namespace of systemd, without namespaces, or without openat2, wf cannot confine commands.
func TestTheUnitLeavesWfWhatItConfinesWith(t *testing.T) {
	harmful := regexp.MustCompile(`^(Protect|Private|ReadOnlyPaths|ReadWritePaths|InaccessiblePaths|TemporaryFileSystem|Bind|RootDirectory|` +
		`RestrictNamespaces|RestrictFileSystems|RestrictSUIDSGID|RestrictAddressFamilies|MemoryDenyWriteExecute|DynamicUser)`)
	for line := range strings.Lines(string(unit)) {
		if harmful.MatchString(line) {
			t.Error(line)
		}
		if filter, found := strings.CutPrefix(strings.TrimSpace(line), "SystemCallFilter="); found && (!strings.HasPrefix(filter, "~") || regexp.MustCompile("@(mount|privileged|system-service|setuid|process)").MatchString(filter)) {
			t.Error(line)
		}
	}
}

func TestSystemdAcceptsTheUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip(err)
	}
	name := filepath.Join(t.TempDir(), "wf.service")
	installed := bytes.ReplaceAll(unit, []byte("/usr/bin/wf"), []byte("/bin/true"))
	if err := os.WriteFile(name, installed, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("systemd-analyze", "verify", "--user", "--man=no", name)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "wf.service") {
			t.Error(line)
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
