package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readmePieces are the workflows of the README by their names: what lies in their directory, what is run
// after wf run, and what comes out.
var readmePieces = map[string]struct {
	files   map[string]string // scripts are those that begin with #!
	env     []string
	model   bool     // script/replies.yaml answers
	then    []string // arguments of a further wf; the run waits before it
	outputs string
	steps   string   // ids with their attempts
	written string   // a file that is there in the end, with what it holds
	never   []string // texts that the run stores nowhere
}{
	"loop": {
		files: map[string]string{"go.mod": "module example.com/x\n\ngo 1.22\n", "x.go": "package x\n\nfunc Two() int { return 1 }\n",
			"x_test.go":    "package x\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Error(\"not two\")\n\t}\n}\n",
			"replies.yaml": "coder#1:\n  - {tool: edit_file, args: {path: x.go, old: return 1, new: return 2}}\n  - {text: It returns two now.}\n"},
		model: true, outputs: "{}", steps: "test#1 coder#1 test#2", written: "x.go: package x\n\nfunc Two() int { return 2 }\n",
	},
	"fan-out": {
		files:   map[string]string{"a.txt": "1\n", "b.txt": "1\n2\n", "c.txt": "1\n2\n3\n"},
		outputs: `{"lines":6}`, steps: "list#1 count#1[0] count#1[1] count#1[2] sum#1",
	},
	"approval": {
		files: map[string]string{"build.sh": "#!/bin/sh\necho built\n", "deploy.sh": "#!/bin/sh\ntouch deployed\n"},
		then:  []string{"answer", "-1", "--choice", "deploy"}, outputs: "{}", steps: "build#1 approve#1 deploy#1", written: "deployed: ",
	},
	"secret": {
		files: map[string]string{"publish.sh": "#!/bin/sh\nprintf '%s' \"$TOKEN\" > given\necho \"with $TOKEN\"\n"},
		env:   []string{"DEPLOY_TOKEN=s3cr3t-v4lue"}, outputs: "{}", steps: "publish#1", written: "given: s3cr3t-v4lue", never: []string{"s3cr3t-v4lue"},
	},
	"retry": {
		files:   map[string]string{"fetch.sh": "#!/bin/sh\ntest -e tried || { touch tried; exit 22; }\n"},
		outputs: "{}", steps: "fetch#1 (2 attempts)",
	},
}

var readmeYAML = regexp.MustCompile("(?s)```yaml\n(.*?)```\n")

// TestTheWorkflowsOfTheReadmeRun takes them as they stand there.
func TestTheWorkflowsOfTheReadmeRun(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 260 {
		t.Errorf("README.md has %d lines, at most 260 are read", n)
	}
	seen := 0
	for _, b := range readmeYAML.FindAllStringSubmatch(string(text), -1) {
		_, rest, _ := strings.Cut(b[1], "name: ")
		name, _, _ := strings.Cut(rest, "\n")
		piece, ok := readmePieces[name]
		if !ok {
			t.Errorf("no test runs the workflow %q of README.md", name)
			continue
		}
		seen++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cache, err := goCache()
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, "piece.yaml", b[1])
			for file, content := range piece.files {
				write(t, dir, file, content)
				if strings.HasPrefix(content, "#!") {
					if err := os.Chmod(filepath.Join(dir, file), 0o755); err != nil {
						t.Fatal(err)
					}
				}
			}
			wf := func(status int, args ...string) []byte {
				t.Helper()
				cmd := exec.Command("wf", args...)
				cmd.Dir = dir
				cmd.Env = append(append(os.Environ(), "HOME="+filepath.Join(dir, "home"), "GOCACHE="+cache, "WF_STORE=", "XDG_STATE_HOME=", "XDG_DATA_HOME="), piece.env...)
				out, err := cmd.Output()
				if got := cmd.ProcessState.ExitCode(); got != status {
					t.Fatalf("wf %v: exit %d, want %d (%v)\n%s", args, got, status, err, out)
				}
				return out
			}
			run := []string{"run", "piece.yaml", "-q"}
			if piece.model {
				run = append(run, "--model", "script/replies.yaml")
			}
			if piece.then == nil {
				wf(0, run...)
			} else {
				wf(8, run...)
				wf(0, piece.then...)
			}
			var shown struct {
				Status  string          `json:"status"`
				Outputs json.RawMessage `json:"outputs"`
				Steps   []struct {
					ID       string            `json:"id"`
					Attempts []json.RawMessage `json:"attempts"`
				} `json:"steps"`
			}
			if err := json.Unmarshal(wf(0, "show", "-1", "-o", "json"), &shown); err != nil {
				t.Fatal(err)
			}
			var steps []string
			for _, s := range shown.Steps {
				steps = append(steps, s.ID)
				if len(s.Attempts) > 1 {
					steps = append(steps, fmt.Sprintf("(%d attempts)", len(s.Attempts)))
				}
			}
			var outputs bytes.Buffer
			if err := json.Compact(&outputs, shown.Outputs); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(steps, " "); shown.Status != "done" || got != piece.steps || outputs.String() != piece.outputs {
				t.Errorf("%s: %s, outputs %s; want %s, outputs %s", shown.Status, got, shown.Outputs, piece.steps, piece.outputs)
			}
			if file, content, ok := strings.Cut(piece.written, ": "); ok {
				got, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil || string(got) != content {
					t.Errorf("%s is %q (%v), want %q", file, got, err, content)
				}
			}
			events := string(wf(0, "replay", "-1", "-o", "jsonl"))
			for _, text := range piece.never {
				if strings.Contains(events, text) {
					t.Errorf("the run stores %q", text)
				}
			}
		})
	}
	if seen != len(readmePieces) {
		t.Errorf("README.md has %d workflows, the test knows %d", seen, len(readmePieces))
	}
}
