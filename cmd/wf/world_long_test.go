package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"wf/agentkit/modeltest"
)

// A document of 216 KB reaches the model whole and once, wherever the workflow mentions it.
func TestF105ALongEdgePromptArrivesWhole(t *testing.T) {
	t.Parallel()
	var doc strings.Builder
	for i := range 12000 {
		fmt.Fprintf(&doc, "%06d is the line.\n", i)
	}
	for name, workflow := range map[string]string{
		"in the edge": `
roles: {a: {prompt: You summarise.}}
edges:
  - {from: START, to: a, prompt: "Summarise: ${{ inputs.doc }}"}
  - {from: a, to: END}
`,
		"in the role": `
roles: {a: {prompt: "You summarise: ${{ inputs.doc }}"}}
edges:
  - {from: START, to: a, prompt: Begin.}
  - {from: a, to: END}
`,
		"unmentioned": `
roles: {a: {prompt: You summarise.}}
edges:
  - {from: START, to: a}
  - {from: a, to: END}
`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Serve(t, func(modeltest.Request) modeltest.Answer { return modeltest.Text("Fine.") })
			w := inWorld(t, s, "wf: 1\nname: long\ninputs: {doc: {type: string, required: true}}\nlimits: {tokens: 9000000}\ndefaults: {model: local/m, timeout: 1m}"+workflow)
			write(t, w.dir, "doc.txt", doc.String())
			w.ends(0, "run", "w.yaml", "-q", "-i", "doc=@doc.txt")
			requests := s.Requests()
			w.is("requests", len(requests), 1)
			text := said(t, requests[0])
			w.is("lines of the document", strings.Count(text, " is the line."), 12000)
			for what, part := range map[string]string{"first line": "000000 is", "middle line": "006000 is", "last line": "011999 is"} {
				w.is("how often the request has the "+what, strings.Count(text, part), 1)
			}
			w.over()
		})
	}
}

// said is all text of the messages of a request on OpenAI's wire.
func said(t *testing.T, r modeltest.Request) string {
	t.Helper()
	var body struct{ Messages []struct{ Content string } }
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range body.Messages {
		b.WriteString(m.Content + "\n")
	}
	return b.String()
}

const worldLoop = `wf: 1
name: loop
limits: {steps: 2000, tokens: 900000000}
defaults: {model: %s, timeout: 2m}
roles:
  outliner: {prompt: AS=outliner; You outline a book.}
  author:
    prompt: AS=author; You write %s.
    tools: [read_file, list_files, edit_file, {shell: auto}]
    compaction: {watermark: 100000000}
    output: {type: object, required: [status, summary], properties: {status: {enum: [done, stuck]}, summary: {type: string}}}
  editor:
    prompt: AS=editor; You judge chapters.
    context: fresh
    output: {type: object, required: [verdict], properties: {verdict: {enum: [print, return]}, reason: {type: string}}}
edges:
  - {from: START, to: outliner, prompt: "A book on <ink> & \"paper\""}
  - {from: outliner, to: author, prompt: "Write by this outline: ${{ output.text }}"}
  - {from: author, to: editor, prompt: "Is this fit to print? ${{ output.body }}"}
  - {from: editor, to: author, when: output.verdict == "return", limit: 400, prompt: "Once more: ${{ output.reason }}"}
  - {from: editor, to: END}
`

// loop is a model of worldLoop: a author that uses tools in every third visit, with thoughts, and a editor that
// returns all but the last. It is asked again after a kill, and then answers the same.
func loop(visits int, at func(visit int)) func(modeltest.Request) modeltest.Answer {
	const odd = "žluťoučký 鉛筆 🖋 <i>&lt;</i> \u2029 C:\\ink\t|"
	return func(r modeltest.Request) modeltest.Answer {
		_, role, _ := strings.Cut(string(r.Body), "AS=")
		role, _, _ = strings.Cut(role, ";")
		visit := 1 + strings.Count(string(r.Body), "Once more: no ")
		switch role {
		case "author":
			at(visit)
			if visit%3 == 1 && r.Results() == 0 {
				return modeltest.Answer{Usage: true, Say: []modeltest.Piece{{Thinking: fmt.Sprint("visit ", visit)}, {Text: "I look."},
					{Call: &modeltest.CallPiece{Index: 0, ID: fmt.Sprintf("a_%d", visit), Name: "read_file", Args: `{"path":"a.txt"}`}},
					{Call: &modeltest.CallPiece{Index: 1, ID: fmt.Sprintf("b_%d", visit), Name: "list_files", Args: `{"path":"."}`}}, {Finish: "tool_calls"}}}
			}
			return modeltest.Text(fmt.Sprintf("---\nstatus: done\nsummary: visit %d %s\n---\n\nCHAPTER=%d;\r\nand an end of DOS\n\n```json\n{\"ink\": 3}\n```\n---\nmore\n\n", visit, strings.ReplaceAll(odd, "\t", " "), visit))
		case "editor":
			_, body, _ := strings.Cut(string(r.Body), "CHAPTER=")
			n, verdict := 0, "return"
			if _, err := fmt.Sscan(strings.SplitN(body, ";", 2)[0], &n); err != nil || n >= visits {
				verdict = "print"
			}
			return modeltest.Text(fmt.Sprintf("---\nverdict: %s\nreason: \"no %d\"\n---\nDetails: %s", verdict, n, strings.Repeat("x", 3000)))
		}
		return modeltest.Text("The outline.\n" + strings.Repeat(odd+"\n", 200))
	}
}

// A loop of many visits over either wire, killed and with its file edited meanwhile: each first request of a visit
// begins with that of the visit before, each within a visit with the one before, and the provider reads all of it from
// its cache.
func TestW02ALoopOfVisitsThatIsKilledKeepsItsPrefix(t *testing.T) {
	if testing.Short() {
		t.Skip("a loop of thirty visits")
	}
	t.Parallel()
	const visits = 30
	for _, m := range worldModels {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			var once sync.Map
			kills := map[int]chan struct{}{7: make(chan struct{}), 16: make(chan struct{}), 25: make(chan struct{})} // visit → it began
			gone := map[int]chan struct{}{7: make(chan struct{}), 16: make(chan struct{}), 25: make(chan struct{})}
			s := modeltest.Serve(t, loop(visits, func(visit int) {
				if _, twice := once.LoadOrStore(visit, true); kills[visit] != nil && !twice {
					close(kills[visit])
					<-gone[visit]
				}
			}))
			s.Binds = true
			w := inWorld(t, s, fmt.Sprintf(worldLoop, m.model, "in prose"))
			write(t, w.dir, "a.txt", "alpha\n")
			args := []string{"run", "w.yaml", "-q"}
			for _, visit := range []int{7, 16, 25} {
				w.killed(kills[visit], args...)
				close(gone[visit])
				write(t, w.dir, "w.yaml", fmt.Sprintf(worldLoop, m.model, "in verse")) // changes no run that began
				args = []string{"resume", "-1", "-q"}
			}
			w.ends(0, args...)
			if _, err := os.Stat(filepath.Join(w.dir, "a.txt")); err != nil {
				t.Error(err)
			}

			var firsts, all []modeltest.Request // of the author
			for _, r := range s.Requests() {
				if !strings.Contains(string(r.Body), "AS=author;") {
					continue
				}
				if r.Results() > 0 {
					w.grows([]modeltest.Request{all[len(all)-1], r})
				} else if n := len(firsts); n == 0 || string(firsts[n-1].Body) != string(r.Body) { // else sent again after a kill
					firsts = append(firsts, r)
				}
				all = append(all, r)
			}
			w.is("visits of the author", len(firsts), visits)
			w.is("requests of the author", len(all), visits+visits/3+len(kills))
			w.grows(firsts)
			w.prove()
			w.over()
		})
	}
}
