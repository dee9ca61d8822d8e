package trace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
	"wf/service/trace"
)

// desk drives runs by performers that say what a test wants, at the times that it wants.
type desk struct {
	*engine.Engine
	t     *testing.T
	clock atomic.Int64 // unix µs
	acts  map[string]func(ctx context.Context, turn protocol.Turn, emit roles.Emit) error
	seen  map[string]string // traceparent by step
}

// now goes on a little with each look, so that what is due in a moment becomes so.
func (d *desk) now() time.Time        { return time.UnixMicro(d.clock.Add(50)) }
func (d *desk) pass(s time.Duration)  { d.clock.Add(s.Microseconds()) }
func (d *desk) at(s string) time.Time { return must(time.Parse(time.RFC3339, s)) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Perform performs any role but a sub-workflow.
func (d *desk) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	d.seen[turn.Step.String()] = turn.TraceParent
	if act := d.acts[turn.Role.Name]; act != nil {
		if err := act(ctx, turn, emit); err != nil {
			return protocol.Conclusion{}, err
		}
	}
	return protocol.Conclusion{Text: new("said by " + turn.Role.Name)}, nil
}

// Prepare offers two tools to each agent.
func (d *desk) Prepare(context.Context, protocol.Turn) (roles.Preparation, error) {
	return roles.Preparation{Tools: `[{"description":"","name":"read_file","parameters":{}},{"description":"","name":"shell","parameters":{}}]`}, nil
}

func newDesk(t *testing.T) *desk {
	s, err := cas.Open(t.Context(), t.TempDir(), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &desk{t: t, acts: map[string]func(context.Context, protocol.Turn, roles.Emit) error{}, seen: map[string]string{}}
	d.clock.Store(d.at("2026-03-01T09:00:00Z").UnixMicro())
	d.Engine = &engine.Engine{Store: s, Now: d.now, Patience: time.Nanosecond, Performers: map[protocol.Action]roles.Performer{
		protocol.ActPrompt: d, protocol.ActRun: d, protocol.ActAsk: &roles.Ask{}, protocol.ActSet: roles.Set{}}}
	return d
}

func (d *desk) begin(flow string, children ...string) protocol.RunID {
	d.t.Helper()
	o := lang.Options{File: "flow.yaml"}
	if len(children) > 0 {
		o.Read = func(string) ([]byte, error) { return []byte(children[0]), nil }
	}
	p, diagnostics := lang.Load([]byte(flow), o)
	if p == nil {
		d.t.Fatal(diagnostics)
	}
	run, _, err := d.Begin(d.t.Context(), engine.Launch{Program: p, Source: []byte(flow), Inputs: must(p.Inputs(nil)), Workspace: d.t.TempDir()})
	if err != nil {
		d.t.Fatal(err)
	}
	return run
}

func (d *desk) drive(run protocol.RunID) {
	d.t.Helper()
	if _, err := d.Drive(d.t.Context(), run, engine.DriveOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

// write gives the lines of a trace, which the reader of the OpenTelemetry collector takes and writes again as they are.
func (d *desk) write(run protocol.RunID, o api.TraceOptions) string {
	d.t.Helper()
	var out bytes.Buffer
	r := trace.Reader{Engine: d.Engine, Messages: func(context.Context, protocol.RunID, string) ([]protocol.Message, error) {
		return []protocol.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "the task"}}, nil
	}}
	if err := r.Write(d.t.Context(), run, o, func(line []byte) error { _, err := out.Write(line); return err }); err != nil {
		d.t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		read, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(line))
		if err != nil {
			d.t.Fatalf("%v\n%s", err, line)
		}
		again := must((&ptrace.JSONMarshaler{}).MarshalTraces(read))
		var ours, theirs any
		if err := json.Unmarshal([]byte(line), &ours); err != nil {
			d.t.Fatal(err)
		}
		if err := json.Unmarshal(again, &theirs); err != nil {
			d.t.Fatal(err)
		}
		if diff := cmp.Diff(theirs, ours); diff != "" {
			d.t.Fatalf("the collector reads something else:\n%s", diff)
		}
	}
	return out.String()
}

type spanOf struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	StartTimeUnixNano, EndTimeUnixNano  int64 `json:",string"`
	Status                              struct{ Code int }
	Attributes                          []struct {
		Key   string
		Value map[string]any
	}
	Links []struct{ TraceID, SpanID string }
}

func spans(lines string) (all []spanOf) {
	for line := range strings.Lines(lines) {
		var x struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []spanOf }
			}
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			panic(err)
		}
		all = append(all, x.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	return all
}

// tree draws spans below their parents, with the day and the time of each.
func tree(lines string) []string {
	all := spans(lines)
	slices.SortStableFunc(all, func(a, b spanOf) int { return int(a.StartTimeUnixNano - b.StartTimeUnixNano) })
	var out []string
	var draw func(parent, indent string)
	draw = func(parent, indent string) {
		for _, s := range all {
			if s.ParentSpanID == parent {
				failed := ""
				if s.Status.Code == 2 {
					failed = " failed"
				}
				out = append(out, fmt.Sprintf("%s%s %s–%s%s", indent, s.Name, clock(s.StartTimeUnixNano), clock(s.EndTimeUnixNano), failed))
				draw(s.SpanID, indent+"  ")
			}
		}
	}
	draw("", "")
	return out
}

func clock(ns int64) string { return time.Unix(0, ns).UTC().Format("2.15:04:05") }

const flow = `wf: 1
name: release
roles:
  coder: {prompt: Write it., retry: {attempts: 2, delay: 1ms}}
  ask: {ask: "Ship it?", choices: [yes, no]}
  ship: {run: ship}
edges:
  - {from: START, to: coder}
  - {from: coder, to: ask}
  - {from: ask, to: ship}
  - {from: ship, to: END}
`

func said(s string) protocol.TextSaid { return protocol.TextSaid{Content: protocol.NewText(s)} }

func usage(in, out int64, ms int64) protocol.Usage {
	return protocol.Usage{Model: "openai/gpt", Input: &in, Cached: new(in / 2), Output: &out, TotalMS: ms, TTFE: 250}
}

// Whatever a model calls and says, a trace is one that collectors read.
func TestHostileCallsAreInATrace(t *testing.T) {
	d := newDesk(t)
	args := []string{`{"n":1e999}`, `{"n":123456789012345678901234567890}`, `{"a":1,"a":2}`, `{"s":"\ud800"}`, "{\"s\":\"\xff\"}", "no JSON \x00\x1b[31m\u202e", "",
		strings.Repeat("[", 300) + strings.Repeat("]", 300), `{"path":"` + strings.Repeat("x", 1<<20) + `"}`, "\ufeff{}", `{"\u0000":-0.0}`}
	d.acts["coder"] = func(ctx context.Context, _ protocol.Turn, emit roles.Emit) error {
		events := []protocol.Data{said("bad \x00\x1b[2J\u202e")}
		for i, a := range args {
			events = append(events, protocol.ToolCall{Call: fmt.Sprintf("c\x00%d", i), Name: "no\x1b[31m\u2028such", Args: protocol.NewText(strings.ToValidUTF8(a, "\ufffd"))})
		}
		if err := emit(ctx, append(events, usage(100, 7, 3000))...); err != nil {
			return err
		}
		for i := range args[1:] { // the last one is broken off
			if err := emit(ctx, protocol.ToolResult{Call: fmt.Sprintf("c\x00%d", i), Content: protocol.NewText("\x00\x07\u202e"), IsError: i%2 == 0}); err != nil {
				return err
			}
		}
		return nil
	}
	run := d.begin(flow)
	d.drive(run)
	for _, prompts := range []bool{false, true} {
		calls, lines := 0, d.write(run, api.TraceOptions{Prompts: prompts})
		if strings.Contains(lines, "such") != prompts {
			t.Errorf("with prompts %v: the name of a tool that there is not, which is what the model said, is in the trace: %v", prompts, !prompts)
		}
		for _, s := range spans(lines) {
			if strings.HasPrefix(s.Name, "execute_tool") {
				calls++
			}
		}
		if calls != len(args) {
			t.Errorf("with prompts %v: %d calls of %d", prompts, calls, len(args))
		}
	}
}

func TestTheTimeInWhichARunWaitsIsInNoSpan(t *testing.T) {
	d := newDesk(t)
	tries := 0
	d.acts["coder"] = func(ctx context.Context, _ protocol.Turn, emit roles.Emit) error {
		d.pass(4 * time.Second)
		call := protocol.ToolCall{Call: "c1", Name: "read_file", Args: protocol.NewText(`{"path":"secret.txt"}`)}
		if err := emit(ctx, said("I look."), call, usage(100, 7, 3000)); err != nil {
			return err
		}
		d.pass(time.Second)
		if err := emit(ctx, protocol.ToolResult{Call: "c1", Content: protocol.NewText("its content")}); err != nil {
			return err
		}
		d.pass(2 * time.Second)
		if tries++; tries == 1 {
			return &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "server_error", Message: "away"}, Class: "server_error"}
		}
		return emit(ctx, said("Done."), usage(120, 9, 1500))
	}
	d.acts["ship"] = func(context.Context, protocol.Turn, roles.Emit) error { d.pass(5 * time.Second); return nil }
	run := d.begin(flow)
	d.drive(run)
	d.pass(48 * time.Hour)
	if _, err := d.Answer(t.Context(), run, engine.Reply{Choice: "yes", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	d.pass(time.Second)
	d.drive(run)
	lines := d.write(run, api.TraceOptions{})
	want := []string{
		"invoke_workflow release 1.09:00:00–1.09:00:14",
		"  invoke_agent coder 1.09:00:00–1.09:00:07 failed",
		"    chat gpt 1.09:00:01–1.09:00:04",
		"      execute_tool read_file 1.09:00:04–1.09:00:05",
		"  invoke_agent coder 1.09:00:07–1.09:00:14",
		"    chat gpt 1.09:00:08–1.09:00:11",
		"      execute_tool read_file 1.09:00:11–1.09:00:12",
		"    chat gpt 1.09:00:12–1.09:00:14",
		"  ask ask 1.09:00:14–1.09:00:14",
		"  invoke_workflow release 3.09:00:14–3.09:00:20",
		"    ask ask 3.09:00:15–3.09:00:15",
		"    run ship 3.09:00:15–3.09:00:20",
	}
	if diff := cmp.Diff(want, tree(lines)); diff != "" {
		t.Error(diff)
	}
	for _, secret := range []string{"I look.", "secret.txt", "its content", "Done.", "Write it.", "the task", "away", "Ship it?"} {
		if strings.Contains(lines, secret) {
			t.Errorf("%q is in a trace without prompts", secret)
		}
	}
	full := d.write(run, api.TraceOptions{Prompts: true})
	for _, word := range []string{"I look.", "secret.txt", "its content", "Done.", "the task", "away"} {
		if !strings.Contains(full, word) {
			t.Errorf("%q is not in a trace with prompts", word)
		}
	}
	if again := d.write(run, api.TraceOptions{}); again != lines {
		t.Error("the same run gives another trace")
	}
	for _, s := range spans(lines) { // commands go on with the span of their visit
		if s.Name == "run ship" {
			if want := "00-" + s.TraceID + "-" + s.SpanID + "-01"; d.seen["ship#1"] != want {
				t.Errorf("the command had TRACEPARENT %s, want %s", d.seen["ship#1"], want)
			}
		}
	}
}

func TestAVisitThatWasCutOffEndsWithItsProcess(t *testing.T) {
	d := newDesk(t)
	tries := 0
	d.acts["coder"] = func(ctx context.Context, turn protocol.Turn, emit roles.Emit) error {
		if tries++; tries > 1 { // the call goes on in the process behind the crash
			d.pass(3 * time.Second)
			return emit(ctx, protocol.ToolResult{Call: "c1", Content: protocol.NewText("x")}, said("Done."), usage(1, 1, 1000))
		}
		d.pass(time.Second)
		if err := emit(ctx, protocol.ToolCall{Call: "c1", Name: "shell", Args: protocol.NewText("{}")}, usage(1, 1, 500)); err != nil {
			return err
		}
		d.pass(time.Second)
		return context.Canceled
	}
	run := d.begin("wf: 1\nname: one\nroles: {coder: {prompt: Write it.}}\n")
	ctx, stop := context.WithCancel(t.Context())
	inner := d.acts["coder"]
	d.acts["coder"] = func(ctx context.Context, turn protocol.Turn, emit roles.Emit) error {
		err := inner(ctx, turn, emit)
		stop()
		return err
	}
	if _, err := d.Drive(ctx, run, engine.DriveOptions{}); err == nil {
		t.Fatal("it was not cut off")
	}
	d.acts["coder"] = inner
	d.pass(time.Hour)
	d.drive(run)
	want := []string{
		"invoke_workflow one 1.09:00:00–1.09:00:02",
		"  invoke_agent coder 1.09:00:00–1.09:00:02",
		"    chat gpt 1.09:00:00–1.09:00:01",
		"      execute_tool shell 1.09:00:01–1.09:00:02 failed",
		"      execute_tool shell 1.10:00:02–1.10:00:05",
		"  invoke_workflow one 1.10:00:02–1.10:00:05",
		"    invoke_agent coder 1.10:00:02–1.10:00:05",
		"      chat gpt 1.10:00:04–1.10:00:05",
	}
	if diff := cmp.Diff(want, tree(d.write(run, api.TraceOptions{}))); diff != "" {
		t.Error(diff)
	}
}

func TestASubWorkflowIsAPartOfTheTraceOfItsCaller(t *testing.T) {
	d := newDesk(t)
	d.acts["work"] = func(context.Context, protocol.Turn, roles.Emit) error { d.pass(2 * time.Second); return nil }
	run := d.begin("wf: 1\nname: outer\nroles: {first: {set: {a: 1}}, sub: {workflow: inner.yaml}}\nedges: [{from: START, to: first}, {from: first, to: sub}, {from: sub, to: END}]\n",
		"wf: 1\nname: inner\nroles: {work: {run: work}}\n")
	d.drive(run)
	want := []string{
		"invoke_workflow outer 1.09:00:00–1.09:00:02",
		"  set first 1.09:00:00–1.09:00:00",
		"  workflow sub 1.09:00:00–1.09:00:02",
		"    invoke_workflow inner 1.09:00:00–1.09:00:02",
		"      run work 1.09:00:00–1.09:00:02",
	}
	lines := d.write(run, api.TraceOptions{})
	if diff := cmp.Diff(want, tree(lines)); diff != "" {
		t.Error(diff)
	}
	children, err := d.Descendants(t.Context(), run)
	if err != nil || len(children) != 1 {
		t.Fatal(children, err)
	}
	alone := spans(d.write(children[0], api.TraceOptions{}))
	all := spans(lines)
	if diff := cmp.Diff(all[len(all)-2:], alone); diff != "" {
		t.Errorf("the run of the sub-workflow is another one by itself:\n%s", diff)
	}
	if want := "00-" + alone[0].TraceID + "-" + alone[0].SpanID + "-01"; d.seen["work#1"] != want {
		t.Errorf("the command had TRACEPARENT %s, want %s", d.seen["work#1"], want)
	}

	fork, err := d.Fork(t.Context(), run, engine.ForkOptions{At: 3, By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	d.drive(fork)
	forked := d.write(fork, api.TraceOptions{})
	if diff := cmp.Diff([]string{"invoke_workflow outer", "  workflow sub", "    invoke_workflow inner", "      run work"}, names(tree(forked))); diff != "" {
		t.Error(diff)
	}
	first := spans(forked)
	i := slices.IndexFunc(first, func(s spanOf) bool { return s.ParentSpanID == "" })
	root := all[slices.IndexFunc(all, func(s spanOf) bool { return s.ParentSpanID == "" })]
	if len(first[i].Links) != 1 || first[i].Links[0].TraceID != root.TraceID || first[i].Links[0].SpanID != root.SpanID || first[i].TraceID == root.TraceID {
		t.Errorf("the fork is no trace of its own with a link to %s: %+v", root.SpanID, first[i])
	}
}

// names are lines of tree without the times.
func names(lines []string) (out []string) {
	for _, l := range lines {
		out = append(out, l[:strings.LastIndexByte(strings.TrimSuffix(l, " failed"), ' ')])
	}
	return out
}

// Runs of any length are written in lines that collectors take.
func TestALongRunIsWrittenInLinesOfABoundedLength(t *testing.T) {
	for _, n := range []int{255, 256, 700} { // each round is two spans
		d := newDesk(t)
		d.acts["coder"] = func(ctx context.Context, _ protocol.Turn, emit roles.Emit) error {
			var all []protocol.Data
			for i := range n {
				id := fmt.Sprint("c", i)
				all = append(all, protocol.ToolCall{Call: id, Name: "shell", Args: protocol.NewText("{}")}, usage(1, 1, 1), protocol.ToolResult{Call: id, Content: protocol.NewText("x")})
			}
			return emit(ctx, all...)
		}
		run := d.begin("wf: 1\nname: one\nroles: {coder: {prompt: Write it.}}\n")
		d.drive(run)
		lines := d.write(run, api.TraceOptions{})
		if got, want := len(spans(lines)), 2*n+2; got != want {
			t.Errorf("%d spans, want %d", got, want)
		}
		if got, want := strings.Count(lines, "\n"), (2*n+2+511)/512; got != want {
			t.Errorf("%d lines of %d spans, want %d", got, 2*n+2, want)
		}
	}
}
