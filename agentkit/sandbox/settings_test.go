package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a confined command is given of the user's own settings is told, and what it is not given is not.
func TestM01SettingsThatACommandIsGivenAreTold(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_CONFIG_HOME", "GOENV", "CARGO_HOME", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	told := func(p Policy, want ...Setting) {
		t.Helper()
		got, err := p.Settings()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
	told(Policy{Workspace: work})
	write(filepath.Join(home, ".gitconfig"), "[user]\nname = Ann\nemail = a@example.com\n[credential]\nhelper = evil\n")
	ann := "GIT_AUTHOR_EMAIL=\"a@example.com\"\nGIT_AUTHOR_NAME=\"Ann\"\nGIT_COMMITTER_EMAIL=\"a@example.com\"\nGIT_COMMITTER_NAME=\"Ann\"\n"
	told(Policy{Workspace: work}, Setting{"git identity", ann})
	told(Policy{}, Setting{"git identity", ann})
	told(Policy{Workspace: work, Environ: []string{"GIT_AUTHOR_NAME=Bo", "GIT_AUTHOR_EMAIL=b", "GIT_COMMITTER_NAME=Bo"}}, Setting{"git identity", "GIT_COMMITTER_EMAIL=\"a@example.com\"\n"})
	write(filepath.Join(work, ".git/config"), "[user]\nname = Work\n")
	told(Policy{Workspace: work})

	write(filepath.Join(home, ".config/go/env"), "GOFLAGS=-tags=x\nGOPROXY=https://ann:secret@example.com\n")
	write(filepath.Join(home, ".cargo/config.toml"), "[build]\n")
	write(filepath.Join(home, ".cargo/credentials.toml"), "secret")
	told(Policy{Workspace: work}, Setting{"settings of go", "GOFLAGS=-tags=x\nGOPROXY=https://example.com\n"}, Setting{"settings of cargo", "[build]\n"})
	write(filepath.Join(home, ".config/go/env"), strings.Repeat("#", settingMax))
	if _, err := (Policy{}).Settings(); err != nil {
		t.Error(err)
	}
	write(filepath.Join(home, ".config/go/env"), strings.Repeat("#", settingMax+1))
	if _, err := (Policy{}).Settings(); err == nil || !strings.Contains(err.Error(), "settings of go") {
		t.Errorf("of a file that is too long it says %v", err)
	}
}
