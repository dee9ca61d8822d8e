package sandbox

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// gitIdentity are the variables by which git inside commits in the name of the user: those of the
// environment, else what the user's own config says as user.name and user.email. Nothing else of that
// config enters, neither helpers nor keys nor what it includes. A repository that names its user itself
// is left to that.
func (h host) gitIdentity(workspace string) map[string]string {
	out := map[string]string{}
	for _, of := range []string{"AUTHOR", "COMMITTER"} {
		for _, what := range []string{"NAME", "EMAIL"} {
			if v, ok := h.lookup("GIT_" + of + "_" + what); ok {
				out["GIT_"+of+"_"+what] = v
			}
		}
	}
	if own := gitUser(filepath.Join(workspace, ".git", "config")); len(out) > 0 || len(own) > 0 {
		return out
	}
	user := map[string]string{}
	for _, path := range []string{h.below("XDG_CONFIG_HOME", ".config", "git/config"), h.value("", ".gitconfig")} {
		if path == "" {
			continue
		}
		for key, value := range gitUser(path) {
			user[key] = value
		}
	}
	for key, name := range map[string]string{"name": "NAME", "email": "EMAIL"} {
		if user[key] != "" {
			out["GIT_AUTHOR_"+name], out["GIT_COMMITTER_"+name] = user[key], user[key]
		}
	}
	return out
}

// gitConfigMax bounds what is read of a config, in bytes.
const gitConfigMax = 1 << 20

// gitUser reads user.name and user.email of a git config, as git-config(1) writes them: the last of a
// key counts. A config that is none has neither.
func gitUser(path string) map[string]string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it does not wait for the other end of a pipe
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	out := map[string]string{}
	section := ""
	for lines := bufio.NewScanner(io.LimitReader(f, gitConfigMax)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if rest, ok := strings.CutPrefix(line, "["); ok {
			section, line, _ = strings.Cut(rest, "]")
			section, line = strings.ToLower(strings.TrimSpace(section)), strings.TrimSpace(line)
		}
		key, value, ok := strings.Cut(line, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if section == "user" && ok && (key == "name" || key == "email") {
			out[key] = gitValue(strings.TrimSpace(value))
		}
	}
	return out
}

// gitValue takes the quotes, escapes and the comment off a value.
func gitValue(s string) string {
	var b strings.Builder
	quoted, end := false, 0 // end is where the last byte that is not blank ends
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
			end = b.Len()
			continue
		case !quoted && (c == '#' || c == ';'):
			return b.String()[:end]
		case c == '\\' && i+1 < len(s): // of a quote or a backslash; others mean nothing in a name
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
		if c := s[i]; quoted || c != ' ' && c != '\t' {
			end = b.Len()
		}
	}
	return b.String()[:end]
}
