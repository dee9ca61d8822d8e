package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/agentkit"
	"wf/agentkit/modeltest"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
)

// slowServer takes 5 ms for an answer: a tool call until there are rounds results, then text.
func slowServer(b *testing.B, rounds int) *httptest.Server {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		time.Sleep(5 * time.Millisecond)
		n := bytes.Count(body.Bytes(), []byte(`"role":"tool"`))
		answer := modeltest.Text("Done.")
		if n < rounds {
			answer = modeltest.Calls(modeltest.Call{ID: fmt.Sprint("c", n), Name: "list_files", Args: `{"path":"."}`})
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range answer.OpenAI() {
			fmt.Fprintf(w, "data: %s\n\n", e)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	b.Cleanup(h.Close)
	return h
}

const agentRounds = 15 // tool calls in a visit; then comes a text

// bareCall is one call without wf: what it sends is fixed, and what comes is passed over.
func bareCall(b *testing.B, url string) {
	res, err := http.Post(url, "application/json", strings.NewReader(`{"model":"test","messages":[{"role":"user","content":"Hello"}],"stream":true}`))
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		b.Fatal(err)
	}
}

// bareVisit is a visit of the agent whose events go nowhere.
func bareVisit(b *testing.B) func() {
	turn := protocol.Turn{Run: "R", Step: protocol.StepID{Role: "a", N: 1, Index: -1}, Visit: 1, Attempt: 1, Workspace: b.TempDir(),
		Role:    protocol.Role{Name: "a", Action: protocol.ActPrompt, Prompt: "Work.", Tools: []string{"list_files"}, Model: []string{"openai/test"}, MaxTurns: 30},
		History: protocol.History{Format: protocol.Format, Role: "a", System: "Work.", Inputs: protocol.JSON("{}"), Visit: protocol.Past{Role: "a", Visit: 1}},
	}
	prepared, err := agentkit.Agent{}.Prepare(b.Context(), turn)
	if err != nil {
		b.Fatal(err)
	}
	turn.History.Tools = prepared.Tools
	nowhere := func(context.Context, ...protocol.Data) error { return nil }
	return func() {
		if _, err := (agentkit.Agent{}).Perform(b.Context(), turn, nowhere); err != nil {
			b.Error(err)
		}
	}
}

// driven runs a workflow from its first event to its last.
func driven(b *testing.B, e *engine.Engine, source string, calls int) {
	p, diags := lang.Load([]byte(source), lang.Options{})
	if p == nil {
		b.Fatal(diags)
	}
	run, _, err := e.Begin(b.Context(), engine.Launch{Program: p, Source: []byte(source), Inputs: json.RawMessage("{}"), Workspace: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	st, err := e.Drive(context.Background(), run, engine.DriveOptions{})
	if err != nil || st.Totals.Calls != calls {
		b.Fatalf("%d calls, %v, %s", st.Totals.Calls, err, st.Reason())
	}
}

func benchEngine(b *testing.B) *engine.Engine {
	s, err := cas.Open(b.Context(), b.TempDir(), cas.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return newApp(os.Stdin, os.Stdout, os.Stderr).Engine(s, nil)
}

// BenchmarkModelCall compares a model call of an agent, its tool call and its part of the
// run's beginning and end included, with a bare HTTP request to the same server, which takes 5 ms.
// They are measured in turns, so that all meet the same machine.
func BenchmarkModelCall(b *testing.B) {
	bareServer, h := slowServer(b, 0), slowServer(b, agentRounds)
	b.Setenv("OPENAI_BASE_URL", h.URL+"/v1")
	visit, e := bareVisit(b), benchEngine(b)
	var bare, diskless, whole time.Duration
	for b.Loop() {
		began := time.Now()
		for range agentRounds + 1 {
			bareCall(b, bareServer.URL+"/v1/chat/completions")
		}
		bare += time.Since(began)
		began = time.Now()
		visit()
		diskless += time.Since(began)
		began = time.Now()
		driven(b, e, "wf: 1\nname: loop\nroles:\n  a: {prompt: Work., tools: [list_files], model: openai/test, max_turns: 30, timeout: 1m}\n", agentRounds+1)
		whole += time.Since(began)
	}
	b.ReportMetric(float64(bare.Microseconds())/float64(b.N*(agentRounds+1)), "bare-µs/call")
	b.ReportMetric(float64(whole.Microseconds())/float64(b.N*(agentRounds+1)), "µs/call")
	b.ReportMetric(diskless.Seconds()/bare.Seconds(), "ratio-without-disk")
	b.ReportMetric(whole.Seconds()/bare.Seconds(), "ratio")
}

// BenchmarkVisits64 has 64 agent visits at once, of one run and of 16 calls each, beside as
// many whose events go nowhere. A ratio of 1 says that the journal limits nothing.
func BenchmarkVisits64(b *testing.B) {
	const visits = 64
	h := slowServer(b, agentRounds)
	b.Setenv("OPENAI_BASE_URL", h.URL+"/v1")
	visit, e := bareVisit(b), benchEngine(b)
	source := fmt.Sprintf("wf: 1\nname: many\nroles:\n  items: {set: {n: %s}}\n  a: {prompt: Work., tools: [list_files], model: openai/test, max_turns: 30, timeout: 1m}\n"+
		"edges:\n  - {from: START, to: items}\n  - {from: items, to: a, for_each: output.n, max_parallel: %d}\n  - {from: a, to: END}\n",
		strings.ReplaceAll(fmt.Sprint(make([]int, visits)), " ", ", "), visits)
	var without, with time.Duration
	for b.Loop() {
		began := time.Now()
		var all sync.WaitGroup
		for range visits {
			all.Go(visit)
		}
		all.Wait()
		without += time.Since(began)
		began = time.Now()
		driven(b, e, source, visits*(agentRounds+1))
		with += time.Since(began)
	}
	b.ReportMetric(float64(b.N*visits)/without.Seconds(), "visits/s-without")
	b.ReportMetric(float64(b.N*visits)/with.Seconds(), "visits/s")
	b.ReportMetric(without.Seconds()/with.Seconds(), "ratio")
}
