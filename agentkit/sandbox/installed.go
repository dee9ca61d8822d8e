package sandbox

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"wf/files"
	"wf/protocol/lazy"
)

// A toolchain is a kind of programs that are looked up in PATH, or in the tree that a variable names. Of the tree in
// which one is installed its own parts are given: people keep projects and keys beside a bin directory.
type toolchain struct {
	programs []string
	env      string
	parts    []string // beside usual; patterns of path.Match
}

// usual are the parts that trees of programs have.
var usual = []string{"bin", "sbin", "lib", "lib32", "lib64", "libexec", "include", "share", "man"}

var toolchains = []toolchain{
	{programs: []string{"go"}, env: "GOROOT", parts: []string{"pkg", "src", "misc", "test", "api", "doc", "VERSION", "go.env"}},
	{programs: []string{"node", "npm", "pnpm", "yarn", "deno", "bun"}},
	{programs: []string{"python3"}, env: "VIRTUAL_ENV", parts: []string{"pyvenv.cfg", "ssl"}},
	{programs: []string{"java", "javac"}, env: "JAVA_HOME", parts: []string{"conf", "jmods", "jre", "release"}},
	{programs: []string{"mvn", "gradle"}, parts: []string{"boot", "conf", "init.d"}},
	{programs: []string{"ruby", "cargo", "rustc", "git", "make"}},
	{programs: []string{"gcc", "clang"}, parts: []string{"*-linux-*"}},
}

// installed are the parts of the tree in which a program of PATH really lies: those beside its bin directory, all
// modules where it is one of Node, else its file alone.
func (h host) installed(name string, t toolchain) []string {
	real := h.program(name)
	if real == "" || inside(real, system) {
		return nil // what is there is given as a whole
	}
	const modules = "/node_modules/"
	if before, _, found := strings.Cut(real, modules); found {
		return h.granted(before + modules)
	}
	if bin := filepath.Dir(real); filepath.Base(bin) == "bin" {
		return h.parts(filepath.Dir(bin), t)
	}
	return []string{real}
}

// parts are those that a toolchain has in a tree.
func (h host) parts(tree string, t toolchain) (out []string) {
	if tree = h.reach(tree); tree == "" || inside(tree, system) || h.refused(tree) {
		return nil
	}
	entries, _ := os.ReadDir(tree) // what cannot be listed is not given
	for _, e := range entries {
		is := func(pattern string) bool { ok, _ := path.Match(pattern, e.Name()); return ok }
		if slices.ContainsFunc(usual, is) || slices.ContainsFunc(t.parts, is) {
			out = append(out, h.granted(filepath.Join(tree, e.Name()))...)
		}
	}
	return out
}

// closed are directories in which programs and keys lie side by side, as do those in the home directory.
var closed = []string{"/home", "/root", "/etc", "/var", "/run", "/tmp", "/dev", "/sys"}

// keyPlaces are those of keys: what a variable names, in a list or alone, else what has that name in the home directory, if any.
var keyPlaces = []struct{ variable, home string }{
	{"CARGO_HOME", ".cargo"}, {"GNUPGHOME", ".gnupg"}, {"XDG_CONFIG_HOME", ".config"}, {"XDG_CACHE_HOME", ".cache"}, {"XDG_DATA_HOME", ".local/share"}, {"XDG_STATE_HOME", ".local/state"},
	{"DOCKER_CONFIG", ".docker"}, {"KUBECONFIG", ".kube"}, {"AWS_SHARED_CREDENTIALS_FILE", ".aws"}, {"AWS_CONFIG_FILE", ".aws"}, {"AZURE_CONFIG_DIR", ".azure"}, {"CLOUDSDK_CONFIG", ".config/gcloud"},
	{"GOOGLE_APPLICATION_CREDENTIALS", ""}, {"NETRC", ".netrc"}, {"npm_config_userconfig", ".npmrc"}, {"npm_config_globalconfig", ""}, {"npm_config_cache", ".npm"}, {"PIP_CONFIG_FILE", ""},
	{"GIT_CONFIG_GLOBAL", ".gitconfig"}, {"PGPASSFILE", ".pgpass"}, {"GRADLE_USER_HOME", ".gradle"}, {"", ".ssh"}, {"", ".local"}, {"", ".m2"},
}

// ofNPM are the settings that npm has beside a Node of the system, among which there may be tokens.
var ofNPM = []string{"/usr/etc/npmrc", "/usr/local/etc/npmrc"}

// keys are the places of keys, links resolved. One that a variable names is kept also where it is not there yet, or cannot be looked at.
func (h host) keys() (out []string) {
	add := func(place string, named bool) {
		if real := h.reach(place); real != "" {
			out = append(out, real)
		} else if named && filepath.IsAbs(place) {
			out = append(out, filepath.Clean(place))
		}
	}
	for _, place := range ofNPM {
		if at := h.reach(place); at != "" && !isOpen(at) {
			add(at, false)
		}
	}
	for _, of := range keyPlaces {
		if named, _ := h.lookup(of.variable); named != "" {
			for _, place := range append(filepath.SplitList(named), named) { // a name can hold what separates a list
				add(place, true)
			}
			continue
		}
		add(h.value("", of.home), false)
	}
	return out
}

// refused reports whether nothing of a tree is given: it holds the home directory, or one in which programs and keys
// lie side by side, or it is a place of keys.
func (h host) refused(tree string) bool {
	holds := func(place string) bool { return within(place, tree) }
	return slices.ContainsFunc(closed, holds) || h.home != "" && holds(h.realHome) || slices.Contains(h.kept(), tree)
}

// granted is what may be read of a tree: all of it, or what lies in it beside places of keys.
func (h host) granted(tree string) (out []string) {
	real := h.reach(tree)
	if real == "" || h.refused(real) {
		return nil
	}
	if !slices.ContainsFunc(h.kept(), func(place string) bool { return within(place, real) }) {
		return []string{tree}
	}
	entries, _ := os.ReadDir(real) // what cannot be listed is not given
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 { // what lies elsewhere is given there, or not
			out = append(out, h.granted(filepath.Join(real, e.Name()))...)
		}
	}
	return out
}

// keyed is a setting that holds a key, in TOML or as npm writes it.
var keyed = lazy.Regexp(`(?i)(token|secret|passw|_auth|api[-_]?key|private[-_]?key)[\w.-]*["']?\s*=`)

// isOpen reports whether a file of settings was read, and no key is among them.
func isOpen(path string) bool {
	text, err := files.Read(path, settingMax)
	return err == nil && openly(string(text)) == string(text) && !keyed().Match(text)
}

// cargoConfig is the file in which cargo has its settings; "" where it is not given.
func (h host) cargoConfig() string {
	path, open := h.cargoSettings()
	if !open {
		return ""
	}
	return path
}

// cargoSettings are the settings of cargo, and whether no key is among them: one belongs into credentials.toml.
func (h host) cargoSettings() (path string, open bool) {
	path = h.below("CARGO_HOME", ".cargo", "config.toml")
	at := h.reach(path)
	if at == "" {
		return "", true
	}
	return path, isOpen(at)
}

// KeptSettings is the file of cargo's settings where commands are not given it, since it holds a key; else "".
func KeptSettings() string {
	path, open := hostOf(os.LookupEnv).cargoSettings()
	if open {
		return ""
	}
	return path
}
