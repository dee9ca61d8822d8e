package main

import (
	"bytes"
	"crypto/md5" // what dpkg --verify compares; it protects nothing
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// deb is a Debian package: an ar archive of its control data and its files.
func (r *release) deb(p platform) (product, error) {
	version := debVersion(r.version, r.when)
	files, err := r.installed(version, p)
	if err != nil {
		return product{}, err
	}
	var digests bytes.Buffer
	size := 0
	for i, f := range files {
		fmt.Fprintf(&digests, "%x  %s\n", md5.Sum(f.data), f.name)
		size += (len(f.data) + 1023) / 1024
		files[i].name = "./" + f.name
	}
	control := fmt.Sprintf(`Package: wf
Version: %s
Architecture: %s
Maintainer: %s
Installed-Size: %d
Section: devel
Priority: optional
Recommends: ca-certificates
Suggests: git
Description: runs workflows of LLM roles, commands and people
 Workflows are written in YAML. Everything that happens is kept by hash in one
 store, so that a run can be resumed after any crash, replayed, forked, compared
 and proved.
 .
 The package has one static program, its manual and completions, and units with
 which systemd runs wf serve for a user, systemctl --user enable --now wf, and
 for a team, as /usr/share/doc/wf/docs/operate.md says.
`, version, p.arch, r.maintainer, size)
	controls, err := zipped([]file{
		{name: "./control", mode: 0o644, data: []byte(control)},
		{name: "./md5sums", mode: 0o644, data: digests.Bytes()},
	}, r.when)
	if err != nil {
		return product{}, err
	}
	data, err := zipped(files, r.when)
	if err != nil {
		return product{}, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, member := range []product{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", controls}, {"data.tar.gz", data}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", member.name, r.when.Unix(), 0, 0, 0o100644, len(member.data))
		b.Write(member.data)
		if len(member.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return product{fmt.Sprintf("wf_%s_%s.deb", version, p.arch), b.Bytes()}, nil
}

// installed are the files of a package where Debian has them.
func (r *release) installed(version string, p platform) ([]file, error) {
	changes := fmt.Sprintf("wf (%s) unstable; urgency=medium\n\n  * What changed for users is in CHANGELOG.md.gz.\n\n -- %s  %s\n",
		version, r.maintainer, r.when.Format(time.RFC1123Z))
	licence := "wf is built from its sources without changes. Their owner has not chosen a licence:\nask the owner of the repository before you distribute it.\n"
	out := []file{
		{name: "usr/bin/wf", mode: 0o755, data: r.programs[p]},
		{name: "usr/lib/systemd/user/wf.service", mode: 0o644, data: unit},
		{name: "usr/lib/systemd/system/wf-server.service", mode: 0o644, data: serverUnit},
		{name: "usr/share/lintian/overrides/wf", mode: 0o644, data: []byte("# a program in Go, without the C library\nwf: statically-linked-binary [usr/bin/wf]\n")},
	}
	add := func(name string, data []byte) error {
		if strings.HasSuffix(name, ".gz") {
			var err error
			if data, err = zip(data); err != nil {
				return err
			}
		}
		out = append(out, file{name: name, mode: 0o644, data: data})
		return nil
	}
	if err := add("usr/share/doc/wf/changelog.gz", []byte(changes)); err != nil {
		return nil, err
	}
	for _, f := range r.texts {
		dir, name := path.Split(f.name)
		to := "usr/share/doc/wf/" + f.name
		switch {
		case dir == "man/man1/":
			to = "usr/share/man/man1/" + name + ".gz"
		case name == completions["bash"]:
			to = "usr/share/bash-completion/completions/wf"
		case name == completions["zsh"]:
			to = "usr/share/zsh/vendor-completions/_wf"
		case name == completions["fish"]:
			to = "usr/share/fish/vendor_completions.d/wf.fish"
		case name == "CHANGELOG.md":
			to += ".gz"
		case dir == "" && strings.HasPrefix(name, "LICENSE"):
			licence = string(f.data)
			continue
		}
		if err := add(to, f.data); err != nil {
			return nil, err
		}
	}
	err := add("usr/share/doc/wf/copyright", []byte(licence))
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return out, err
}

// debVersion is a version as Debian orders them: 1.2.0-rc.1 comes before 1.2.0, what is behind a
// tag after it, and what has no tag by its date before all others.
func debVersion(version string, when time.Time) string {
	if version[0] < '0' || version[0] > '9' {
		return "0~" + when.Format("20060102.150405") + "." + strings.ReplaceAll(version, "-", ".")
	}
	base, rest, found := strings.Cut(version, "-")
	if !found {
		return version
	}
	sep := "~"
	if rest[0] >= '0' && rest[0] <= '9' || strings.HasPrefix(rest, "dirty") { // 1.2.0-5-g0123456789ab
		sep = "+"
	}
	return base + sep + strings.ReplaceAll(rest, "-", ".")
}
