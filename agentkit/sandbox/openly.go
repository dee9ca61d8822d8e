package sandbox

import (
	"slices"
	"strings"

	"wf/files"
	"wf/protocol/lazy"
)

// userinfo is the user and password of a URL, up to the last @ before its path.
var userinfo = lazy.Regexp(`(://)[^/?#\s,|]*@`)

// openly is a value of the allow-list without the passwords of its URLs: a proxy of modules is often named
// with one. A command that needs it is handed it by env.
func openly(value string) string {
	if !strings.Contains(value, "@") {
		return value
	}
	return userinfo().ReplaceAllString(value, "$1")
}

// mostGoEnv bounds the file in which go keeps its settings, in bytes.
const mostGoEnv = 64 << 10

// goEnv is the file in which go keeps settings; "" where that is not one that a command may read, since a URL in
// it holds a password. Then openGoEnv has what it says.
func (h host) goEnv() string {
	path := h.value("GOENV", ".config/go/env")
	if text := h.goSettings(); openly(text) != text {
		return ""
	}
	return path
}

func (h host) goSettings() string {
	path := h.reach(h.value("GOENV", ".config/go/env"))
	if path == "" {
		return ""
	}
	text, err := files.Read(path, mostGoEnv)
	if err != nil {
		return "" // go says what is wrong with it
	}
	return string(text)
}

// openGoEnv are the settings of a file that is kept from commands, without its passwords: those of the
// allow-list that the environment does not set.
func (h host) openGoEnv() map[string]string {
	out := map[string]string{}
	text := h.goSettings()
	if openly(text) == text {
		return out
	}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if _, given := h.lookup(name); ok && !given && slices.Contains(Allowed, name) && name != "GOENV" {
			out[name] = openly(value)
		}
	}
	return out
}
