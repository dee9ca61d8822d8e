package agentkit

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"wf/agentkit/prompt"
	"wf/protocol"
)

func TestDynamicTextIsReadOnlyWhereTheRoleAsks(t *testing.T) {
	s := newStage(t, "{}")
	dir := s.turn.Workspace
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("Be careful.\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if p, err := s.agent.Prepare(t.Context(), s.turn); err != nil || p.Inject != "" {
		t.Errorf("unasked there is %q (%v)", p.Inject, err)
	}
	s.turn.Role.Dynamic = []string{"cwd", "AGENTS.md", "none.md", "git"}
	if p, err := s.agent.Prepare(t.Context(), s.turn); err != nil || p.Inject != "Working directory: "+dir+"\n\nAGENTS.md:\nBe careful." {
		t.Errorf("got %q (%v)", p.Inject, err)
	}
	for link, to := range map[string]string{"out": filepath.Join(filepath.Dir(dir), "replies.yaml"), "token": ".wf/token"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, ".wf"), 0o777), os.WriteFile(filepath.Join(dir, ".wf/token"), []byte("secret"), 0o666), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"out", "token", "pipe"} {
		s.turn.Role.Dynamic = []string{name}
		if p, err := s.agent.Prepare(t.Context(), s.turn); err == nil {
			t.Errorf("%s is read as %q", name, p.Inject)
		}
	}
	s.turn.Role.Dynamic = []string{"../replies.yaml"}
	if _, err := s.agent.Prepare(t.Context(), s.turn); err == nil {
		t.Error("a file outside of the workspace was read")
	}
	if err := exec.Command("git", "-C", dir, "init", "-q", "-b", "main").Run(); err != nil {
		t.Skipf("no git: %v", err)
	}
	evil := filepath.Join(t.TempDir(), "evil")
	if err := exec.Command("git", "-C", dir, "config", "core.fsmonitor", "touch "+evil+"; false").Run(); err != nil {
		t.Fatal(err)
	}
	s.turn.Role.Dynamic = []string{"date", "git"}
	p, err := s.agent.Prepare(t.Context(), s.turn)
	if err != nil || !strings.HasPrefix(p.Inject, "Date: ") || !strings.HasSuffix(p.Inject, "\n\nGit: branch main, no commits yet") {
		t.Errorf("got %q (%v)", p.Inject, err)
	}
	if _, err := os.Lstat(evil); err == nil {
		t.Error("wf ran a program that the workspace names")
	}
	commit := strings.Repeat("5e", 20)
	if err := os.WriteFile(filepath.Join(dir, ".git/refs/heads/main"), []byte(commit+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if p, err := s.agent.Prepare(t.Context(), s.turn); err != nil || !strings.HasSuffix(p.Inject, "\n\nGit: branch main, commit "+commit) {
		t.Errorf("got %q (%v)", p.Inject, err)
	}

	s.turn.History.Visit.Inject = p.Inject
	messages, err := prompt.BuildMessages(s.turn.History)
	if err != nil {
		t.Fatal(err)
	}
	if last := messages[len(messages)-1]; last.Role != protocol.RoleUser || !strings.HasSuffix(last.Content, p.Inject) {
		t.Errorf("the inject is not at the tail of %q", last.Content)
	}
}
