package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/protocol"
)

// Allowed are the variables that a command inherits; everything else is left out, the keys of
// models above all.
var Allowed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "TMPDIR",
	"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOENV", "GOPROXY", "GONOPROXY",
	"GOPRIVATE", "GOSUMDB", "GONOSUMDB", "GONOSUMCHECK", "GOINSECURE", "GOTOOLCHAIN", "GOWORK", "GO111MODULE", "CGO_ENABLED", "GOMAXPROCS",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS",
	"XDG_CACHE_HOME", "CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT", "JAVA_HOME", "NODE_PATH", "npm_config_cache", "VIRTUAL_ENV", "PIP_CACHE_DIR",
}

// own are the directories that commands have for themselves: tmp and home those of equal trust in one run, the others those of
// equal trust in one workflow and workspace.
type own struct {
	tmp, home               string
	goCache, modules, cache string
	layersDir               string // of the layers over the user's caches, which nothing inside can write but as such
}

// enterable gives a directory its mode back, which a command may have taken from those after it.
func enterable(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o700 == 0o700 {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// dirs are those that commands write themselves.
func (o own) dirs() []string { return []string{o.tmp, o.home, o.goCache, o.modules, o.cache} }

// privateRoot is where those of all workspaces and runs lie.
func privateRoot() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the private directories of commands: %w", err)
	}
	return filepath.Join(cache, "wf", "sandbox"), nil
}

// nameOf is a name for what belongs to these.
func nameOf(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// trust is a name for the trust of a command: two have the same where both could do and read the same, and only there.
func (p Policy) trust() string {
	hosts := p.Hosts
	if p.Network {
		hosts = nil
	}
	set := func(of []string) []string { return slices.Compact(slices.Sorted(slices.Values(of))) }
	return nameOf(fmt.Sprintf("%q %t %q %q %t %s", set(p.Trust.Secrets), p.Network, set(hosts), set(p.Devices), p.SSHAgent, Probe().Name))
}

// Places are where the directories of a policy lie.
type places struct{ caches, run string }

// places names them, for a workspace without links in its path; those of a command of no run are yet to be named.
func (p Policy) places(workspace string) (places, error) {
	if p.alone {
		return places{p.Private, p.Private}, nil
	}
	trust := p.trust()
	if p.Private != "" {
		dir := filepath.Join(p.Private, trust)
		return places{dir, dir}, nil
	}
	root, err := privateRoot()
	if err != nil {
		return places{}, err
	}
	at := places{caches: filepath.Join(root, nameOf(workspace, p.Trust.Workflow, trust))}
	if p.Trust.Run != "" {
		at.run = filepath.Join(runDir(root, p.Trust.Run), nameOf(workspace, p.Trust.Workflow, trust))
	}
	return at, nil
}

// runDir is where HOME and TMPDIR of the commands of a run lie.
func runDir(root string, run protocol.RunID) string {
	return filepath.Join(root, runPrefix+nameOf(string(run)))
}

const runPrefix = "run-"

// made makes them. Only they can be written from inside, never the directory that holds
// them, so that none can be swapped for a link.
func (at places) made() (own, error) {
	var real [2]string
	for i, dir := range []string{at.run, at.caches} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return own{}, err
		}
		if err := enterable(dir); err != nil { // without namespaces a command can change its mode
			return own{}, err
		}
		var err error
		if real[i], err = filepath.EvalSymlinks(dir); err != nil {
			return own{}, err
		}
	}
	run, caches := real[0], real[1]
	o := own{filepath.Join(run, "tmp"), filepath.Join(run, "home"),
		filepath.Join(caches, "gocache"), filepath.Join(caches, "gomod"), filepath.Join(caches, "cache"), filepath.Join(caches, "layers")}
	for _, d := range o.dirs() {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return own{}, err
		}
		if real, err := filepath.EvalSymlinks(d); err != nil || real != d {
			return own{}, fmt.Errorf("the private directory %s is a link; remove it", d)
		}
		if err := enterable(d); err != nil {
			return own{}, err
		}
	}
	return o, nil
}

// seen are where commands in namespaces find HOME and TMPDIR: at the same paths in every run, since compilers and results of
// tests know of paths. Nothing of another lies there.
func (o own) seen() ([]symlink, error) {
	root, err := privateRoot()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	return []symlink{{o.home, filepath.Join(root, "home")}, {o.tmp, filepath.Join(root, "tmp")}}, nil
}

// environ is the allow-list, with what must lead elsewhere inside of the sandbox. Caches of the user that
// the command may write over are where they are.
func (o own) environ(h host, p Policy, over []overlay, place func(string) string) []string {
	set := map[string]string{
		"HOME": place(o.home), "TMPDIR": place(o.tmp), "GOCACHE": o.goCache, "XDG_CACHE_HOME": o.cache,
		"GOMODCACHE": h.moduleCache(), "GOENV": h.goEnv(),
		"CARGO_HOME": h.value("CARGO_HOME", ".cargo"), "RUSTUP_HOME": h.value("RUSTUP_HOME", ".rustup"), "PYENV_ROOT": h.value("PYENV_ROOT", ".pyenv"),
		"npm_config_cache": h.npmCache(), "npm_config_logs_dir": place(filepath.Join(o.home, "npm-logs")), "npm_config_update_notifier": "false",
		"PIP_CACHE_DIR": "",
	}
	for name, value := range h.openGoEnv() {
		if _, ours := set[name]; !ours {
			set[name] = value
		}
	}
	maps.Copy(set, p.gitIdentity(h))
	for _, o := range over {
		if o.Env != "" {
			set[o.Env] = o.At
		}
	}
	if len(p.Hosts) > 0 && !p.Network {
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
			set[name], set[strings.ToLower(name)] = proxyURL, proxyURL
		}
		set["NO_PROXY"], set["no_proxy"], set["NODE_USE_ENV_PROXY"] = noProxy, noProxy, "1"
	}
	if p.online() {
		// Downloads go to caches of the workspace; what the user has is taken from his, so
		// that nothing from inside ever reaches the builds of others.
		proxy, given := h.lookup("GOPROXY")
		if !given {
			proxy = set["GOPROXY"]
		}
		if proxy = openly(proxy); proxy == "" {
			proxy = "https://proxy.golang.org,direct"
		}
		if cache := h.moduleCache(); cache != "" {
			proxy = "file://" + filepath.Join(cache, "cache", "download") + "," + proxy
		}
		set["GOMODCACHE"], set["GOPROXY"] = o.modules, proxy
		set["npm_config_cache"] = filepath.Join(o.cache, "npm")
	}
	for name, below := range map[string]string{"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "GOENV": ".config/go/env"} {
		if _, given := h.lookup(name); !given {
			if _, err := os.Stat(filepath.Join(h.home, below)); err != nil || h.home == "" {
				set[name] = ""
			}
		}
	}

	env := allowed(h.lookup, set)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if set[name] != "" {
			env = append(env, name+"="+set[name])
		}
	}
	return append(env, p.Environ...)
}

// Environ is the environment of a command that is not confined: the allow-list alone.
func Environ() []string { return allowed(os.LookupEnv, nil) }

// allowed is the allow-list of an environment, but for what is set otherwise.
func allowed(lookup func(string) (string, bool), set map[string]string) []string {
	var env []string
	for _, name := range Allowed {
		_, ours := set[name]
		if v, ok := lookup(name); ok && !ours {
			env = append(env, name+"="+openly(v))
		}
	}
	return env
}
