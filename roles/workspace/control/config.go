package control

import (
	"bytes"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"wf/roles/workspace"
)

// config takes in what a config has git run or include, and what the included ones name in turn: from the directory of the name by which git
// opens it, whatever links are on the way. Where hooks lie in a directory with the name of _, as husky has them, they run those around it.
func (f *finder) config(file Place, deep int) error {
	settings, err := f.settings(file.Path)
	if err != nil {
		return err
	}
	for _, s := range settings {
		from, includes := f.top, s.key != "core.hookspath"
		if includes {
			from = file.Name[:strings.LastIndexByte(file.Name, '/')]
		}
		value := fromHome(s.value)
		if value == "" {
			continue
		}
		if f.named++; f.named > namesMax {
			f.Cut = true
			return nil
		}
		if err := f.target(from, value, includes, deep); err != nil {
			return err
		}
	}
	return nil
}

// A setting names a file or a directory.
type setting struct{ key, value string }

// settings are those of a config that name something, read once.
func (e *Eye) settings(file string) ([]setting, error) {
	if known, ok := e.configs[file]; ok {
		return known, nil
	}
	b, err := e.read(file, configMax)
	if err != nil {
		return nil, err
	}
	var out []setting
	for key, value := range workspace.GitConfig(bytes.NewReader(b)) {
		if key == "core.hookspath" || key == "include.path" || strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path") {
			out = append(out, setting{key, value})
		}
	}
	if e.configs == nil {
		e.configs = map[string][]setting{}
	}
	e.configs[file] = out
	return out, nil
}

// userConfigs are the configs of the user and of the machine that are there, which may name a file in each repository.
func (e *Eye) userConfigs() ([]Place, error) {
	if e.users != nil {
		return e.users, nil
	}
	users := []Place{}
	for _, file := range append(workspace.UserGitConfigs(os.LookupEnv), workspace.SystemGitConfig) {
		p, err := e.Follow(file)
		if err != nil {
			return nil, err
		}
		if p.There {
			users = append(users, p)
		}
	}
	e.users = users
	return users, nil
}

// fromHome writes out the home directory with which a path of a config begins; "" is no path.
func fromHome(path string) string {
	if !strings.HasPrefix(path, "~") {
		return path
	}
	name, rest, _ := strings.Cut(path[1:], "/")
	home := os.Getenv("HOME")
	if name != "" {
		u, err := user.Lookup(name)
		if err != nil {
			return "" // git finds nothing either
		}
		home = u.HomeDir
	}
	if home == "" {
		return ""
	}
	return home + "/" + rest
}

// target takes in one path of a config.
func (f *finder) target(from, value string, includes bool, deep int) error {
	if path := filepath.Clean(value); !includes && filepath.Base(path) == "_" {
		around, err := f.below(from, filepath.Dir(path))
		if err != nil {
			return err
		}
		if !f.holds(around.Path) {
			value = filepath.Dir(path)
		}
	}
	p, err := f.below(from, value)
	if err != nil {
		return err
	}
	if !p.There {
		if err := f.absent(p.Path); err != nil {
			return err
		}
	}
	if f.gits(p.Path) && !p.Linked() && f.known(p.Path) || f.holds(p.Path) {
		return nil
	}
	again := f.has(p.Name)
	if !again {
		if err := f.add(p); err != nil {
			return err
		}
	}
	if kind, err := f.Kind(p.Path); err != nil || again || !includes || kind != unix.S_IFREG || deep >= deepMax {
		return err
	}
	return f.config(p, deep+1)
}

// below is follow from a directory on the way to which links may be.
func (f *finder) below(from, path string) (Place, error) {
	if !filepath.IsAbs(path) {
		path = from + "/" + path // not cleaned: a link may lie before ..
	}
	return f.follow("/", path)
}

// known reports whether a path lies in a part of a git directory that is listed.
func (f *finder) known(path string) bool {
	for _, p := range f.Places {
		if p.There && (path == p.Path || strings.HasPrefix(path, p.Path+"/")) {
			return true
		}
	}
	return false
}

func (f *finder) has(name string) bool {
	for _, p := range f.Places {
		if p.Name == name {
			return true
		}
	}
	return false
}
