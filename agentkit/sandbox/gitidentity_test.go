package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheUserOfGitIsReadAsGitReadsIt(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"[user]\n\tname = Ann Lee\n\temail = ann@example.com\n":            {"name": "Ann Lee", "email": "ann@example.com"},
		"[USER] name=Ann\nEmail = a@b # work\n":                            {"name": "Ann", "email": "a@b"},
		"[user]\n name = \"Ann # \\\"A\\\" Lee \" ; no\n":                  {"name": "Ann # \"A\" Lee "},
		"[user]\n name = Ann\n[core]\n name = no\n[user \"x\"]\nname = no": {"name": "Ann"},
		"[user]\n name = one\n[user]\n name = two\n":                       {"name": "two"},
		"[include]\n path = evil\n[credential]\n helper = evil\n":          {},
		"\x00\x01 no config": {},
		"":                   {},
	} {
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, gitUser(path)); d != "" {
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
