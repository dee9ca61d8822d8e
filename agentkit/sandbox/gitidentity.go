package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"wf/roles/workspace"
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
	for key, value := range workspace.GitConfig(io.LimitReader(f, gitConfigMax)) {
		if name, ok := strings.CutPrefix(key, "user."); ok && (name == "name" || name == "email") {
			out[name] = value
		}
	}
	return out
}
