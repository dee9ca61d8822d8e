package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/daemon"
	"wf/files/filestest"
	"wf/protocol"
)

// collectorProgram is the variable with a collector of OpenTelemetry that has the receiver otlp and the exporter debug, as each
// distribution has.
const collectorProgram = "WF_OTELCOL"

// tracedYAML has all kinds of spans: agents with tools, commands that fail once, a sub-workflow, always roles, a wait.
const (
	tracedYAML = `wf: 1
name: traced
inputs: {items: {type: array, default: []}}
limits: {steps: 2000}
defaults: {model: script/replies.yaml, timeout: 1m}
roles:
  coder: {prompt: You write., tools: [read_file], retry: {attempts: 2, delay: 1ms}}
  flaky: {run: 'test -e "$WF_RUN_ID" || { touch "$WF_RUN_ID"; exit 3; }', retry: {attempts: 2, delay: 1ms}}
  lost: {run: exit 4}
  sub: {workflow: inner.yaml}
  each: {set: {n: "${{ item }}"}}
  gate: {ask: "Go on?", choices: [yes, no]}
  tidy: {run: 'echo tidied'}
edges:
  - {from: START, to: coder, prompt: "Write."}
  - {from: coder, to: flaky}
  - {from: flaky, to: lost}
  - {from: lost, to: sub, on: failure}
  - {from: sub, to: each, for_each: inputs.items}
  - {from: each, to: gate}
  - {from: gate, to: END}
always: tidy
`
	tracedInner = `wf: 1
name: inner
defaults: {model: script/replies.yaml, timeout: 1m}
roles: {judge: {prompt: You judge.}}
`
	tracedReplies = `coder#1:
  - {text: "I look\nfirst.", tools: [{tool: read_file, args: {path: note.txt}}, {tool: read_file, args: {path: missing.txt}}]}
  - {error: {status: 503}}
  - {text: Done., usage: {input: 120, cached: 100, output: 10}}
judge#1: [{text: "Good: \"äöü\" – 橋"}]
`
	brokenYAML = `wf: 1
name: broken
roles: {work: {run: exit 7}, stop: {run: exit 8}}
always: stop
`
)

// A collector as people run it takes what wf serve sends as runs end, and what wf trace writes, as it is described.
func TestACollectorTakesTheTraces(t *testing.T) {
	program := os.Getenv(collectorProgram)
	if program == "" {
		t.Skip(collectorProgram + " names no collector of OpenTelemetry")
	}
	col := startCollector(t, program)
	dir := t.TempDir()
	write(t, dir, "traced.yaml", tracedYAML)
	write(t, dir, "inner.yaml", tracedInner)
	write(t, dir, "replies.yaml", tracedReplies)
	write(t, dir, "broken.yaml", brokenYAML)
	write(t, dir, "note.txt", "a note\n")
	s := startServe(t, dir, "--listen", "unix", "--workflows", dir, "--otlp", col.url)
	awaitSent(t, dir, "wf.otlp/v1") // what ends before that is not sent
	items := make([]int, 1000)
	for i := range items {
		items[i] = i
	}
	var runs []protocol.RunID
	for _, flow := range []string{"traced", "broken"} {
		body := map[string]any{"workflow": flow}
		if flow == "traced" {
			body["inputs"] = map[string]any{"items": items}
		}
		runs = append(runs, s.started(body))
	}
	s.awaitStatus(runs[0], protocol.Waiting)
	var fork struct{ ID protocol.RunID }
	if status := s.call("POST", "/v1/runs/"+string(runs[0])+"/fork", map[string]any{"step": "flaky#1"}, &fork); status/100 != 2 {
		t.Fatalf("fork: %d", status)
	}
	runs = append(runs, fork.ID)
	for _, run := range []protocol.RunID{runs[0], runs[2]} {
		s.awaitStatus(run, protocol.Waiting)
		if status := s.call("POST", "/v1/runs/"+string(run)+"/answer", map[string]any{"choice": "yes"}, nil); status/100 != 2 {
			t.Fatalf("answer: %d", status)
		}
		s.awaitStatus(run, protocol.Done)
	}
	s.awaitStatus(runs[1], protocol.Suspended)
	if status := s.call("POST", "/v1/runs/"+string(runs[1])+"/cancel", map[string]any{}, nil); status/100 != 2 {
		t.Fatalf("cancel: %d", status)
	}
	s.awaitStatus(runs[1], protocol.Cancelled)

	want := map[string]tracedSpan{}
	for _, run := range runs {
		for _, span := range spansOf(t, dir, run) {
			want[span.ID] = span
		}
	}
	for _, run := range runs {
		awaitSent(t, dir, string(run))
	}
	col.has(want)
	kinds := map[string]int{}
	for _, span := range want {
		word, _, _ := strings.Cut(span.Name, " ")
		kinds[word]++
		if span.Parent != "" && want[span.Parent].Trace != span.Trace {
			t.Errorf("%s has no parent in its trace", span.Name)
		}
		for _, link := range span.Links {
			kinds["link"]++
			if trace, id, _ := strings.Cut(link, " "); want[id].Trace != trace {
				t.Errorf("%s has a link that leads nowhere", span.Name)
			}
		}
	}
	if kinds["set"] < 2000 || kinds["chat"] < 5 || kinds["execute_tool"] != 2 || kinds["invoke_agent"] != 3 || kinds["workflow"] != 2 || kinds["link"] != 1 || kinds["run"] < 8 {
		t.Errorf("not all kinds of spans are there: %v", kinds)
	}

	full := map[string]tracedSpan{}
	for _, run := range runs { // texts of any kind
		for _, span := range spansOf(t, dir, run, "--prompts") {
			full[span.ID] = span
		}
		for line := range bytes.Lines(traceLines(t, dir, run, "--prompts")) {
			answer, err := http.Post(col.url+"/v1/traces", "application/json", bytes.NewReader(line))
			if err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != http.StatusOK || string(said) != `{"partialSuccess":{}}` {
				t.Errorf("the collector answers %s: %s %v", answer.Status, said, err)
			}
			answer.Body.Close()
		}
	}
	if len(full) != len(want) {
		t.Errorf("%d spans with prompts, %d without", len(full), len(want))
	}
	col.has(full)
}

// awaitSent waits until the exporter of a daemon has noted something.
func awaitSent(t *testing.T, dir, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	notes := filepath.Join(dir, ".wf", daemon.Dir)
	err := filestest.Await(ctx, notes, func() bool {
		names, _ := filepath.Glob(filepath.Join(notes, "otlp-*.jsonl"))
		return slices.ContainsFunc(names, func(name string) bool {
			b, err := os.ReadFile(name)
			return err == nil && strings.Contains(string(b), what)
		})
	})
	if err != nil {
		t.Fatalf("%s is not sent: %v", what, err)
	}
}

// tracedSpan is what a collector says of a span.
type tracedSpan struct {
	Trace, ID, Parent, Name, Kind, Status, Message, From, To string
	Attributes, Links                                        []string
}

func traceLines(t *testing.T, dir string, run protocol.RunID, args ...string) []byte {
	t.Helper()
	out, err := wfIn(dir, append([]string{"trace", string(run)}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// spansOf are the spans of a run in the words of the collector.
func spansOf(t *testing.T, dir string, run protocol.RunID, args ...string) (all []tracedSpan) {
	t.Helper()
	type attribute struct {
		Key   string
		Value struct {
			StringValue *string
			IntValue    *string
			DoubleValue *float64
			BoolValue   *bool
			ArrayValue  *struct {
				Values []struct{ StringValue string }
			}
		}
	}
	for line := range bytes.Lines(traceLines(t, dir, run, args...)) {
		var x struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct {
						TraceID, SpanID, ParentSpanID, Name string
						Kind                                int
						Start                               int64 `json:"startTimeUnixNano,string"`
						End                                 int64 `json:"endTimeUnixNano,string"`
						Attributes                          []attribute
						Links                               []struct{ TraceID, SpanID string }
						Status                              struct {
							Code    int
							Message string
						}
					}
				}
			}
		}
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		for _, s := range x.ResourceSpans[0].ScopeSpans[0].Spans {
			span := tracedSpan{Trace: s.TraceID, ID: s.SpanID, Parent: s.ParentSpanID, Name: s.Name, Message: s.Status.Message,
				Kind: map[int]string{1: "Internal", 3: "Client"}[s.Kind], Status: map[int]string{0: "Unset", 2: "Error"}[s.Status.Code],
				From: utc(s.Start), To: utc(s.End)}
			for _, a := range s.Attributes {
				var value string
				switch v := a.Value; {
				case v.StringValue != nil:
					value = "Str(" + *v.StringValue + ")"
				case v.IntValue != nil:
					value = "Int(" + *v.IntValue + ")"
				case v.DoubleValue != nil:
					value = "Double(" + strconv.FormatFloat(*v.DoubleValue, 'f', -1, 64) + ")"
				case v.BoolValue != nil:
					value = fmt.Sprintf("Bool(%t)", *v.BoolValue)
				case v.ArrayValue != nil:
					var list []string
					for _, w := range v.ArrayValue.Values {
						list = append(list, strconv.Quote(w.StringValue))
					}
					value = "Slice([" + strings.Join(list, ",") + "])"
				}
				span.Attributes = append(span.Attributes, a.Key+": "+value)
			}
			for _, l := range s.Links {
				span.Links = append(span.Links, l.TraceID+" "+l.SpanID)
			}
			all = append(all, span)
		}
	}
	return all
}

// utc is a time in ns as the collector prints it.
func utc(ns int64) string { return time.Unix(0, ns).UTC().String() }

// A otelcol is a collector that runs as a process of its own and prints what it takes.
type otelcol struct {
	t    *testing.T
	url  string
	file string // with what it printed: it has printed a request when it answers
	seen int    // bytes of it
}

// startCollector starts a collector with the config of docs/operate.md.
func startCollector(t *testing.T, program string) *otelcol {
	t.Helper()
	page, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, "collector.yaml", pieceOf(t, string(page), "receivers: {otlp:", "127.0.0.1:4318", "127.0.0.1:0"))
	c := &otelcol{t: t, file: filepath.Join(dir, "printed")}
	out, err := os.Create(c.file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	log := &safeBuffer{}
	cmd := exec.Command(program, "--config", filepath.Join(dir, "collector.yaml"))
	cmd.Stdout, cmd.Stderr = out, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, ended := context.WithCancelCause(t.Context())
	go func() { ended(fmt.Errorf("it ended: %w", cmd.Wait())) }()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
	})
	if !log.await(ctx, "Everything is ready") {
		t.Fatalf("the collector does not start: %v\n%s", context.Cause(ctx), log)
	}
	m := regexp.MustCompile(`"endpoint": "(127\.0\.0\.1:\d+)"`).FindStringSubmatch(log.String())
	if m == nil {
		t.Fatalf("the collector does not say where it listens:\n%s", log)
	}
	c.url = "http://" + m[1]
	return c
}

var (
	// What stands before the first span of a request, and behind the last.
	printedRequest = regexp.MustCompile(`(?m)^(?:Traces\t\{.*\}|ResourceSpans #\d+\n(?:.*\n)*?InstrumentationScope wf *)\n`)

	printedField = regexp.MustCompile(`^    ([A-Z][A-Za-z ]*?) *: (.*)$`)
	printedLink  = regexp.MustCompile(`(?m)^     -> Trace ID: (\w+)\n     -> ID: (\w+)$`)
)

// took are the spans that were printed since it was asked last, by id.
func (c *otelcol) took() (n int, all map[string]tracedSpan) {
	c.t.Helper()
	printed, err := os.ReadFile(c.file)
	if err != nil {
		c.t.Fatal(err)
	}
	text := string(printed[c.seen:])
	c.seen, all = len(printed), map[string]tracedSpan{}
	text = printedRequest.ReplaceAllString(text, "")
	for _, block := range regexp.MustCompile(`(?m)^Span #\d+\n`).Split(text, -1)[1:] {
		head, links, _ := strings.Cut(block, "\nLinks:\n")
		head, attributes, _ := strings.Cut(head, "\nAttributes:\n     -> ")
		head, _, _ = strings.Cut(head, "\n    DroppedAttributesCount:")
		var s tracedSpan
		before, message, _ := strings.Cut(head, "\n    Status message : ")
		s.Message = message
		for line := range strings.SplitSeq(before, "\n") {
			m := printedField.FindStringSubmatch(line)
			if m == nil {
				c.t.Fatalf("the collector prints a line of another form: %q", line)
			}
			switch m[1] {
			case "Trace ID":
				s.Trace = m[2]
			case "Parent ID":
				s.Parent = m[2]
			case "ID":
				s.ID = m[2]
			case "Name":
				s.Name = m[2]
			case "Kind":
				s.Kind = m[2]
			case "Start time":
				s.From = m[2]
			case "End time":
				s.To = m[2]
			case "Status code":
				s.Status = m[2]
			}
		}
		if attributes != "" {
			s.Attributes = strings.Split(strings.TrimRight(attributes, "\n"), "\n     -> ")
		}
		for _, l := range printedLink.FindAllStringSubmatch(links, -1) {
			s.Links = append(s.Links, l[1]+" "+l[2])
		}
		all[s.ID] = s
		n++
	}
	return n, all
}

// has checks that it took some spans since it was asked last, each once, and no others.
func (c *otelcol) has(want map[string]tracedSpan) {
	c.t.Helper()
	n, got := c.took()
	if n != len(want) {
		c.t.Errorf("the collector took %d spans, want %d", n, len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Error(diff)
	}
}
