package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheUserOfGitIsReadAsGitReadsIt(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"[user]\n\tname = Ann Lee\n\temail = ann@example.com\n":            {"user.name": "Ann Lee", "user.email": "ann@example.com"},
		"[USER] name=Ann\nEmail = a@b # work\n":                            {"user.name": "Ann", "user.email": "a@b"},
		"[user]\n name = \"Ann # \\\"A\\\" Lee \" ; no\n":                  {"user.name": "Ann # \"A\" Lee "},
		"[user]\n name = Ann\n[core]\n name = no\n[user \"x\"]\nname = no": {"user.name": "Ann", "core.name": "no", "user.x.name": "no"},
		"[user]\n name = one\n[user]\n name = two\n":                       {"user.name": "two"},
		"[include]\n path = evil\n[credential]\n helper = evil\n":          {"include.path": "evil", "credential.helper": "evil"},
		"[includeIf \"gitdir:[x]/\"] path = b\n[a \"]\"]\nc=d\n#e=f\n":     {"includeif.gitdir:[x]/.path": "b", "a.].c": "d"},
		"\x00\x01 no config": {},
		"":                   {},
	} {
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, gitValues(path)); d != "" {
			t.Errorf("%q:\n%s", text, d)
		}
	}
}

func TestWhoseNameACommitBears(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	environ := map[string]string{"HOME": home}
	host := hostOf(func(name string) (string, bool) { v, ok := environ[name]; return v, ok })
	if got := host.gitIdentity(work); len(got) != 0 {
		t.Errorf("without a config: %v", got)
	}
	write(filepath.Join(home, ".config/git/config"), "[user]\nname = Old\nemail = old@example.com\n")
	write(filepath.Join(home, ".gitconfig"), "[user]\nname = Ann\n")
	want := map[string]string{"GIT_AUTHOR_NAME": "Ann", "GIT_COMMITTER_NAME": "Ann", "GIT_AUTHOR_EMAIL": "old@example.com", "GIT_COMMITTER_EMAIL": "old@example.com"}
	if d := cmp.Diff(want, host.gitIdentity(work)); d != "" {
		t.Error(d)
	}
	environ["GIT_AUTHOR_NAME"] = "Set"
	if d := cmp.Diff(map[string]string{"GIT_AUTHOR_NAME": "Set"}, host.gitIdentity(work)); d != "" {
		t.Error(d)
	}
	delete(environ, "GIT_AUTHOR_NAME")
	write(filepath.Join(work, ".git/config"), "[user]\nemail = work@example.com\n")
	if got := host.gitIdentity(work); len(got) != 0 {
		t.Errorf("over the user of the repository: %v", got)
	}
}

// safe.bareRepository counts where the user or the system set it, not where a repository did.
func TestWhetherGitTakesBareRepositories(t *testing.T) {
	if len(gitValues("/etc/gitconfig")["safe.barerepository"]) > 0 {
		t.Skip("the system sets it")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	for _, c := range []struct {
		text string
		want bool
	}{{"", true}, {"[safe]\n\tbareRepository = explicit\n", false}, {"[safe]\n\tbareRepository = all\n", true}} {
		if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := TakesBareRepositories(); got != c.want {
			t.Errorf("%q: %v", c.text, got)
		}
	}
}
