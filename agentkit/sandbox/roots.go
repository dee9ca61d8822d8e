package sandbox

import (
	"bufio"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/roles/workspace"
	"wf/roles/workspace/appear"
)

// A host is what the environment says about this machine: where toolchains and caches lie.
type host struct {
	lookup func(string) (string, bool)
	home   string   // "" is none
	path   []string // absolute ones

	realHome string // links resolved, where that could be done

	// written are the directories that commands write, links resolved. What a link there leads to is not
	// given: a command before this one may have made it.
	written []string

	// targets are where links lead, "" for what is none: of one command: its hundred paths share their
	// beginnings.
	targets map[string]string

	kept func() []string // places of keys
}

func hostOf(lookup func(string) (string, bool), written ...string) host {
	h := host{lookup: lookup, written: written, targets: map[string]string{}}
	h.home, _ = lookup("HOME")
	h.realHome = h.home
	if real, err := filepath.EvalSymlinks(h.home); err == nil && h.home != "" {
		h.realHome = real
	}
	if path, ok := lookup("PATH"); ok {
		for _, dir := range filepath.SplitList(path) {
			if filepath.IsAbs(dir) && !slices.Contains(h.path, dir) {
				h.path = append(h.path, dir)
			}
		}
	}
	h.kept = sync.OnceValue(h.keys)
	return h
}

// value is an absolute path from the environment, or that path below the home directory.
func (h host) value(name, below string) string {
	if v, _ := h.lookup(name); filepath.IsAbs(v) {
		return v
	}
	if below == "" || h.home == "" {
		return ""
	}
	return filepath.Join(h.home, below)
}

// system is what every program needs. Of /etc only what holds no secrets is named, since root
// may read all of it.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store",
	"/proc", "/sys/fs/cgroup", "/sys/kernel/mm", "/sys/devices/system",
	"/etc/alternatives", "/etc/apk/world", "/etc/bash.bashrc", "/etc/bash_completion.d", "/etc/ca-certificates", "/etc/crypto-policies",
	"/etc/debian_version", "/etc/environment", "/etc/fonts", "/etc/gai.conf", "/etc/gitconfig", "/etc/group", "/etc/host.conf",
	"/etc/hostname", "/etc/hosts", "/etc/inputrc", "/etc/issue", "/etc/java", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/locale.alias", "/etc/locale.conf", "/etc/localtime", "/etc/lsb-release", "/etc/magic", "/etc/magic.mime",
	"/etc/manpath.config", "/etc/maven", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd",
	"/etc/perl", "/etc/php", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/etc/profile", "/etc/profile.d", "/etc/protocols", "/etc/python3", "/etc/resolv.conf",
	"/etc/rpc", "/etc/services", "/etc/shells", "/etc/ssl/cert.pem", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo",
	"/etc/timezone", "/etc/vim", "/etc/wgetrc", "/etc/xdg", "/etc/zsh",
}

// systemGlobs are directories with a version in their name.
var systemGlobs = []string{"/etc/java-*", "/etc/python3.*", "/etc/profile.d"}

// readable lists what may be read beside the workspace: the system, what PATH names, and
// toolchains with their caches of modules.
func (h host) readable() []string {
	var out []string
	for _, tree := range system {
		out = append(out, h.granted(tree)...)
	}
	for _, pattern := range systemGlobs {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		out = append(out, found...)
	}
	for _, dir := range h.path {
		out = append(out, h.granted(dir)...)
	}
	for _, t := range toolchains {
		out = append(out, h.parts(h.value(t.env, ""), t)...)
		for _, name := range t.programs {
			out = append(out, h.installed(name, t)...)
		}
	}
	out = append(out, h.moduleCache(), h.npmCache(), h.goEnv(), h.cargoConfig())
	for _, of := range []struct{ name, below string }{
		{"RUSTUP_HOME", ".rustup"}, {"PYENV_ROOT", ".pyenv"},
		{"NODE_PATH", ""}, {"SSL_CERT_FILE", ""}, {"SSL_CERT_DIR", ""}, {"NIX_SSL_CERT_FILE", ""}, {"NODE_EXTRA_CA_CERTS", ""},
	} {
		out = append(out, h.granted(h.value(of.name, of.below))...)
	}
	for _, part := range []string{"bin", "registry", "git", "env"} { // not credentials.toml
		out = append(out, h.below("CARGO_HOME", ".cargo", part))
	}
	return out
}

func (h host) moduleCache() string {
	if v := h.value("GOMODCACHE", ""); v != "" {
		return v
	}
	gopath := h.value("GOPATH", "go")
	if gopath == "" {
		return ""
	}
	return filepath.Join(filepath.SplitList(gopath)[0], "pkg", "mod")
}

// goCache is where go keeps what it has built, links resolved; "" where that is not there.
func (h host) goCache() string { return h.cache("GOCACHE", "go-build") }

// BuiltGo reports whether go has anything in the cache of the user.
func BuiltGo() bool {
	entries, err := os.ReadDir(hostOf(os.LookupEnv).goCache())
	return err == nil && len(entries) > 0
}

func (h host) pipCache() string { return h.cache("PIP_CACHE_DIR", "pip") }

// cache is the directory that a variable names, else one among the caches of the user.
func (h host) cache(name, dir string) string {
	return h.reach(cmp.Or(h.value(name, ""), h.below("XDG_CACHE_HOME", ".cache", dir)))
}

// below is a path in a directory that the environment names, or that has a name in the home directory.
func (h host) below(name, home, dir string) string {
	if v := h.value(name, home); v != "" {
		return filepath.Join(v, dir)
	}
	return ""
}

// reach resolves the links of an absolute path. It is "" where nothing is there, and where the way leads
// through a directory that commands write: what lies in there is given with it, and what lies elsewhere
// is not theirs to name.
func (h host) reach(path string) string {
	at := h.way(path, func(next string) bool { return !inside(next, h.written) })
	if at == "" {
		return ""
	}
	if _, err := os.Lstat(at); err != nil {
		return ""
	}
	return at
}

// links are the symbolic links on the way to paths, which lead to the same files in a root that has
// the resolved paths alone.
func (h host) links(paths []string) []symlink {
	var out []symlink
	seen := map[string]bool{}
	for _, path := range paths {
		h.way(path, func(next string) bool {
			if to := h.target(next); to != "" && !seen[next] {
				seen[next] = true
				out = append(out, symlink{next, to})
			}
			return true
		})
	}
	return out
}

// way is the end of an absolute path when links are followed, as the kernel does; "" for any other path. step is
// called with each name on the way, before it is known for a link, and may refuse it.
func (h host) way(path string, step func(next string) bool) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	at, rest := "/", path
	for hops := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next := filepath.Join(at, name) // at has no links, so that .. is what the kernel takes it for
		if !step(next) {
			return ""
		}
		to := h.target(next)
		if to == "" {
			at = next
			continue
		}
		if hops++; hops > 40 {
			return ""
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = to + "/" + rest
	}
	return at
}

// target is where a link leads, "" for what is no link.
func (h host) target(path string) string {
	to, known := h.targets[path]
	if !known {
		to, _ = os.Readlink(path) // an error is no link
		h.targets[path] = to
	}
	return to
}

// existing resolves paths and leaves out those that are not there.
func (h host) existing(paths []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, path := range paths {
		if real := h.reach(path); real != "" && !seen[real] {
			seen[real] = true
			out = append(out, real)
		}
	}
	return out
}

// caches are the directories of the user that commands read and write over.
func (h host) caches() []overlay {
	return []overlay{{At: h.goCache(), Env: "GOCACHE"}, {At: h.reach(h.npmCache())}, {At: h.pipCache(), Env: "PIP_CACHE_DIR"}}
}

func (h host) npmCache() string { return h.value("npm_config_cache", ".npm") }

// program is where a program of PATH really lies; "" where there is none.
func (h host) program(name string) string {
	for _, dir := range h.path {
		file := dir + "/" + name
		if unix.Access(file, unix.F_OK) != nil {
			continue // one look instead of one at each directory above
		}
		real := h.reach(file)
		if info, err := os.Lstat(cmp.Or(real, os.DevNull)); err == nil && info.Mode().IsRegular() {
			return real
		}
	}
	return ""
}

// sockets lists the sockets with a path on which some process listens now: Landlock before version 9 does not know about them. Those of
// the workspace are found by their files, since the name by which a socket was bound is another once it, or a directory on its way,
// was moved; others by these names. One that cannot be looked at may be one.
func sockets(work string, watch *appear.Watch) (out []string, err error) {
	f, err := os.Open("/proc/net/unix")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no unix sockets in this kernel
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lost := "" // one may be where no other file is looked for
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		path := boundPath(lines.Text())
		info, err := os.Lstat(path)
		switch {
		case path == "" || path[0] == '@':
		case filepath.IsAbs(path) && (err == nil && info.Mode()&fs.ModeSocket != 0 || errors.Is(err, fs.ErrPermission)):
			out = append(out, path)
		default:
			if within(path, work) || lost == "" && !filepath.IsAbs(path) {
				lost = path
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if within(lost, work) && watch.Partial() {
		return nil, protocol.ErrUnseen.With("end that service, or begin it anew", "the socket %s was moved, and the workspace holds more than is looked at: nothing would keep a command from it", lost)
	}
	found, err := watch.Sockets(lost != "")
	for _, path := range found {
		if bound, err := workspace.Bound(path); err != nil && !errors.Is(err, fs.ErrNotExist) || bound {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

// boundPath is the name by which a socket was bound, of a line of /proc/net/unix; "" for one without.
func boundPath(line string) string {
	for range 6 {
		_, line, _ = strings.Cut(line, " ")
	}
	_, path, _ := strings.Cut(strings.TrimLeft(line, " "), " ") // behind the inode
	return path
}
