package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

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

// BenchmarkModelCall compares a model call of an agent, its tool call included, with a bare
// call of the official client to the same server, which takes 5 ms. With the journal on disk
// each round is two commits, which the disk decides about.
func BenchmarkModelCall(b *testing.B) {
	const rounds = 15
	b.Run("bare", func(b *testing.B) {
		h := slowServer(b, 0)
		client := openai.NewClient(option.WithBaseURL(h.URL+"/v1"), option.WithAPIKey("k"))
		params := openai.ChatCompletionNewParams{Model: "test", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello")}}
		for b.Loop() {
			s := client.Chat.Completions.NewStreaming(b.Context(), params)
			for s.Next() {
				_ = s.Current()
			}
			if err := s.Err(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/call")
	})
	b.Run("agent without a disk", func(b *testing.B) {
		h := slowServer(b, rounds)
		b.Setenv("OPENAI_BASE_URL", h.URL+"/v1")
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
		for b.Loop() {
			if _, err := (agentkit.Agent{}).Perform(b.Context(), turn, nowhere); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*(rounds+1)), "µs/call")
	})
	b.Run("agent", func(b *testing.B) {
		h := slowServer(b, rounds)
		b.Setenv("OPENAI_BASE_URL", h.URL+"/v1")
		source := []byte("wf: 1\nname: loop\nroles:\n  a: {prompt: Work., tools: [list_files], model: openai/test, max_turns: 30, timeout: 1m}\n")
		p, diags := lang.Load(source, lang.Options{})
		if p == nil {
			b.Fatal(diags)
		}
		s, err := cas.Open(b.Context(), b.TempDir(), cas.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		e := newApp(os.Stdin, os.Stdout, os.Stderr).newEngine(s, nil)
		calls := 0
		for b.Loop() {
			run, _, err := e.Begin(b.Context(), engine.Launch{Program: p, Source: source, Inputs: json.RawMessage("{}"), Workspace: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			st, err := e.Drive(context.Background(), run, engine.DriveOptions{})
			if err != nil || st.Totals.Calls != rounds+1 {
				b.Fatalf("%d calls, %v, %s", st.Totals.Calls, err, st.Reason())
			}
			calls += st.Totals.Calls
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(calls), "µs/call")
	})
}
