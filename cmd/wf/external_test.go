package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// standIn takes the place of a coding agent: it wants a turn on stdin and its key, and answers
// with frontmatter. Its second visit must find the first in its messages.
const standIn = `#!/bin/sh
[ "$1" = -p ] || exit 64
turn=$(cat)
case $turn in *'"wf.turn/v1"'*) ;; *) echo "no turn on stdin" >&2; exit 65 ;; esac
[ "$ANTHROPIC_API_KEY" = secret-of-the-test ] || { echo "no key" >&2; exit 66; }
case $turn in
*'the first try'*) touch fixed; echo '---'; echo 'status: done'; echo '---'; echo 'now it is green' ;;
*) echo '---'; echo 'status: done'; echo '---'; echo "the first try with $ANTHROPIC_API_KEY" ;;
esac
`

// The workflow of docs/external-agents.md runs as it stands there.
func TestTheWorkflowOfTheExternalAgentsPageRuns(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/external-agents.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	yaml, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the page has no workflow")
	}
	dir := t.TempDir()
	write(t, dir, "other.yaml", yaml)
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	install(t, filepath.Join(bin, "claude"), strings.NewReader(standIn))
	wf := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("wf", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "WF_STORE="+filepath.Join(dir, ".wf"), "XDG_STATE_HOME=", "XDG_DATA_HOME=",
			"ANTHROPIC_API_KEY=secret-of-the-test", "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("wf %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	wf("run", "other.yaml", "-q")
	shown := wf("show", "-1", "-o", "json")
	if !strings.Contains(shown, `"id": "coder#2"`) || !strings.Contains(shown, "the first try with [secret:ANTHROPIC_API_KEY]") {
		t.Errorf("%s", shown)
	}
	wf("replay", "-1", "--check")
	wf("verify", "-1")
}
