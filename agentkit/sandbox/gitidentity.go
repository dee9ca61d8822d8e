package sandbox

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"wf/files"
	"wf/roles/workspace"
)

// gitIdentity are the variables by which git inside commits in the name of the user: those of the
// environment, else what the user's own config says as user.name and user.email. Nothing else of that
// config enters, neither helpers nor keys nor what it includes. A repository that names its user itself
// is left to that; "" is a workspace that is none.
func (h host) gitIdentity(dir string) map[string]string {
	out := map[string]string{}
	for _, of := range []string{"AUTHOR", "COMMITTER"} {
		for _, what := range []string{"NAME", "EMAIL"} {
			if v, ok := h.lookup("GIT_" + of + "_" + what); ok {
				out["GIT_"+of+"_"+what] = v
			}
		}
	}
	own := map[string]string{}
	if dir != "" {
		own = gitValues(workspace.Opened(filepath.Join(dir, ".git", "config")))
	}
	_, named := own["user.name"]
	_, reached := own["user.email"]
	if len(out) > 0 || named || reached {
		return out
	}
	user := h.gitConfig()
	for key, name := range map[string]string{"user.name": "NAME", "user.email": "EMAIL"} {
		if user[key] != "" {
			out["GIT_AUTHOR_"+name], out["GIT_COMMITTER_"+name] = user[key], user[key]
		}
	}
	return out
}

// gitConfig is what the user's own config of git says, by key.
func (h host) gitConfig() map[string]string {
	out := map[string]string{}
	for _, path := range workspace.UserGitConfigs(h.lookup) {
		maps.Copy(out, gitValues(path))
	}
	return out
}

// TakesBareRepositories reports whether the user's git takes any directory that looks like a repository for one:
// safe.bareRepository is not explicit, neither in the user's config nor in that of the system. What these
// include is not read.
func TakesBareRepositories() bool {
	const key = "safe.barerepository"
	values := gitValues(workspace.SystemGitConfig)
	maps.Copy(values, hostOf(os.LookupEnv).gitConfig())
	return !strings.EqualFold(values[key], "explicit")
}

// gitConfigMax bounds what is read of a config, in bytes.
const gitConfigMax = 1 << 20

// gitValues reads a git config: the last value of a key counts. A config that is none is empty.
func gitValues(path string) map[string]string {
	out := map[string]string{}
	f, err := files.OpenNamed(path)
	if err != nil {
		return out
	}
	defer f.Close()
	maps.Insert(out, workspace.GitConfig(io.LimitReader(f, gitConfigMax)))
	return out
}
