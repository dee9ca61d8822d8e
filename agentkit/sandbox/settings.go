package sandbox

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"wf/files"
)

// A Setting is one of the user's own that a confined command is given although nothing asks for it.
type Setting struct{ Name, Value string }

// settingMax bounds a file of settings, in bytes.
const settingMax = 1 << 20

// Settings are those that the command of a policy is given, in a form to be compared: the user of git, and the files of
// settings of go and cargo. Those that are not there are left out. An error is a file that cannot be read whole.
func (p Policy) Settings() ([]Setting, error) {
	h := hostOf(os.LookupEnv)
	var out []Setting
	add := func(name, value string) {
		if value != "" {
			out = append(out, Setting{name, value})
		}
	}
	identity, text := p.gitIdentity(h), ""
	for _, name := range slices.Sorted(maps.Keys(identity)) {
		text += fmt.Sprintf("%s=%q\n", name, identity[name])
	}
	add("git identity", text)
	for _, of := range []struct{ name, path string }{
		{"settings of go", h.value("GOENV", ".config/go/env")},
		{"settings of cargo", h.cargoConfig()},
	} {
		path := h.reach(of.path)
		if path == "" {
			continue
		}
		value, err := files.Read(path, settingMax)
		if err != nil {
			return nil, fmt.Errorf("the %s: %w", of.name, err)
		}
		add(of.name, openly(string(value)))
	}
	return out, nil
}

// gitIdentity is that of the host, but for what the policy says itself.
func (p Policy) gitIdentity(h host) map[string]string {
	out := h.gitIdentity(p.Workspace)
	for _, pair := range p.Environ {
		name, _, _ := strings.Cut(pair, "=")
		delete(out, name)
	}
	return out
}
