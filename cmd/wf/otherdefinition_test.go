package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"wf/api"
	"wf/files/filestest"
	"wf/hub/client"
)

const oneThat = "wf: 1\nname: one\nroles: {only: {run: 'echo WORD'}}\n"

// F-306: what a file of this machine says is what runs at a server, or nothing is: a workflow of the same name is none.
func TestF306AFileNeverMeansAnotherDefinitionOfItsName(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	at := func(name, word string) string {
		dir := filepath.Join(top, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, dir, "one.yaml", strings.Replace(oneThat, "WORD", word, 1))
		return dir
	}
	type ran struct{ ID, Definition string }
	run := func(dir, server string, more ...string) (r ran, stderr string, err error) {
		cmd := wfIn(dir, append([]string{"run", "one.yaml", "-o", "json", "--hub", server}, more...)...)
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		if err = cmd.Run(); err == nil {
			err = json.Unmarshal(out.Bytes(), &r)
		}
		return r, said.String(), err
	}
	refused := func(t *testing.T, dir, server string, definitions int, more ...string) (ways []string) {
		t.Helper()
		_, said, err := run(dir, server, more...)
		if err == nil {
			t.Fatal("another definition was started")
		}
		cids := map[string]bool{}
		message, fix, _ := strings.Cut(said, "fix:")
		for _, cid := range regexp.MustCompile(`\bbafy[a-z2-7]+`).FindAllString(message, -1) {
			cids[cid] = true
		}
		if len(cids) != 1+definitions {
			t.Errorf("%d definitions are named, want that of the file and %d of the server:\n%s", len(cids), definitions, said)
		}
		return regexp.MustCompile(`wf run [^,\n]*?\bone(?:@\S+?)?(?:, or | starts)`).FindAllString(strings.Join(strings.Fields(fix), " ")+" ", -1)
	}
	pasted := func(t *testing.T, dir, way string) string {
		t.Helper()
		way = strings.TrimSuffix(strings.TrimSuffix(way, ", or "), " starts")
		cmd := exec.Command("sh", "-c", way+" -o json")
		cmd.Dir, cmd.Env = dir, wfIn(dir).Env
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v", way, err)
		}
		return string(out)
	}

	t.Run("server", func(t *testing.T) {
		s := startServe(t, at("server", "theirs"))
		server := s.said.Listen[0].URL
		mine := at("client", "mine")
		ways := refused(t, mine, server, 1)
		if len(ways) != 1 || strings.Contains(ways[0], "@") {
			t.Fatalf("ways out: %q", ways)
		}
		pasted(t, mine, ways[0])
		if runs := s.awaitRuns(1); len(runs) != 1 {
			t.Errorf("%d runs, want that of the command that was pasted", len(runs))
		}
		if r, said, err := run(at("alike", "theirs"), server); err != nil || r.Definition == "" {
			t.Errorf("the same definition: %v\n%s", err, said)
		}
	})

	t.Run("hub", func(t *testing.T) {
		var said api.HubServing
		if err := json.Unmarshal(startProcess(t, at("hub", "none"), "hub", "--listen", "127.0.0.1:0", "--data", filepath.Join(top, "data")).line, &said); err != nil {
			t.Fatal(err)
		}
		server := said.Listen[0].URL
		for _, word := range []string{"first", "second"} {
			startServe(t, at("worker-"+word, word), "--listen", "unix", "--hub", server, "--hub-token-file", said.AgentToken)
		}
		var all []api.Workflow
		filestest.Until(t, "both workers list their workflow", func() bool {
			all, _ = client.Service{API: ofHub(t, said)}.Workflows(t.Context())
			return len(all) == 2
		}, nil)
		by := map[string]string{} // worker by definition
		for _, w := range all {
			if w.Name != "one" || len(w.Agents) != 1 || !strings.Contains(w.Problem, "2 definitions") || !strings.Contains(w.Problem, "wf run one@"+w.Definition) {
				t.Errorf("listed: %+v", w)
			}
			by[w.Definition] = w.Agents[0]
		}
		token := []string{"--hub-token-file", said.TokenFile}
		workers := map[string]bool{}
		for range 3 { // at random it would be the right one once in eight times
			for _, word := range []string{"first", "second"} {
				r, text, err := run(at("client-"+word, word), server, token...)
				if err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				worker := by[r.Definition]
				if worker == "" {
					t.Errorf("run %s has the definition %s, the workers have %v", r.ID, r.Definition, by)
				}
				workers[word+" at "+worker] = true
			}
		}
		if len(workers) != 2 {
			t.Errorf("each definition has one worker: %v", workers)
		}
		other := at("client-third", "third")
		ways := refused(t, other, server, 2, token...)
		if len(ways) != 2 {
			t.Fatalf("ways out: %q", ways)
		}
		for _, way := range ways {
			pasted(t, other, way)
		}
	})
}
