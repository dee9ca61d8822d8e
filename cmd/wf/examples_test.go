package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"wf/protocol"
)

// TestExamples runs the workflows of the directory workflows, as their comments say.
func TestExamples(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Abs("../../workflows")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/examples",
		Setup: func(env *testscript.Env) error {
			if err := atHome(env); err != nil {
				return err
			}
			// The scripts name the examples as their own comments do.
			return os.Symlink(examples, filepath.Join(env.WorkDir, "workflows"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": runExits,
			"field": runField,
			"save":  runSave,
			"await": runAwait,

			"posted": runPosted,
		},
	})
}

// runPosted sends an event to a webhook at a socket, as GitHub does, and checks the status of the answer, which becomes
// stdout:  posted STATUS SOCKET NAME FILE KEY
func runPosted(ts *testscript.TestScript, _ bool, args []string) {
	body := ts.ReadFile(args[3])
	there := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", ts.MkAbs(args[1]))
	}}}
	r, err := http.NewRequest("POST", "http://wf"+protocol.WebhookPath+args[2], strings.NewReader(body))
	ts.Check(err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-GitHub-Event", "push")
	r.Header.Set("X-Hub-Signature-256", fmt.Sprintf("sha256=%x", hmacOf(args[4], body)))
	answer, err := there.Do(r)
	ts.Check(err)
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	ts.Check(err)
	if got := strconv.Itoa(answer.StatusCode); got != args[0] {
		ts.Fatalf("the event is answered with %s, want %s: %s", got, args[0], said)
	}
	fmt.Fprintf(ts.Stdout(), "%s", said)
}

// TestEveryWorkflowOfTheCookbookIsRun looks for the script that runs each.
func TestEveryWorkflowOfTheCookbookIsRun(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../workflows/cookbook/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("testdata/examples/cookbook_*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasSuffix(name, ".replies.yaml") {
			if !strings.Contains(all.String(), "--model script/"+name) {
				t.Errorf("no script of the tests answers from %s", name)
			}
		} else if !strings.Contains(all.String(), "exec wf run workflows/cookbook/"+name) && !strings.Contains(all.String(), "exits 8 wf run workflows/cookbook/"+name) {
			t.Errorf("no script of the tests runs %s", name)
		}
	}
	if len(files) < 15 || len(scripts) < 10 {
		t.Errorf("%d files and %d scripts were found", len(files), len(scripts))
	}
}
