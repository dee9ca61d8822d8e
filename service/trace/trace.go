package trace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"wf/api"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
)

// A Reader reads traces from a store.
type Reader struct {
	Engine *engine.Engine
	// Messages is what a visit was sent first; needed for prompts alone.
	Messages func(ctx context.Context, run protocol.RunID, step string) ([]protocol.Message, error)
}

// Write hands the spans of a run, with those of its sub-workflows, to a caller: as lines of OTLP/JSON, each a request
// of OTLP/HTTP. Of a sub-workflow's run they are a part of the trace of the run that it belongs to. Errors are those
// of the store, and of the caller's function.
func (r Reader) Write(ctx context.Context, run protocol.RunID, o api.TraceOptions, line func([]byte) error) error {
	b := &batcher{to: line}
	st, err := r.Engine.State(ctx, run)
	if err != nil {
		return err
	}
	chain, err := r.Engine.Above(ctx, run, st)
	if err != nil {
		return err
	}
	t := &tree{Reader: r, prompts: o.Prompts, folds: map[protocol.RunID]*fold{}}
	if t.id, err = r.Engine.Trace(ctx, chain[0]); err != nil {
		return err
	}
	for _, above := range chain[:len(chain)-1] { // the place of the run in its trace
		if err := t.add(ctx, above, func(span) error { return nil }); err != nil {
			return err
		}
	}
	if err := t.add(ctx, run, b.add); err != nil {
		return err
	}
	children, err := r.Engine.Descendants(ctx, run)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := t.add(ctx, child, b.add); err != nil {
			return err
		}
	}
	return b.flush()
}

// tree is a trace that is being read, each run before its sub-workflows.
type tree struct {
	Reader
	id      protocol.TraceID
	prompts bool
	folds   map[protocol.RunID]*fold
}

// add reads a run. One whose parent is not in the tree, since it belongs to visits that a fork shares with another
// run, is passed over.
func (t *tree) add(ctx context.Context, run protocol.RunID, to func(span) error) error {
	st, err := t.Engine.State(ctx, run)
	if err != nil {
		return err
	}
	f := &fold{trace: t.id, run: run, flow: st.Program().Workflow, to: to, visits: map[string]*stretch{}, calls: map[string]*call{}, began: map[string][]*stretch{}}
	if len(t.folds) > 0 {
		parent := st.Info.Parent
		if parent == nil || st.Info.Forked.Defined() || t.folds[parent.Run] == nil {
			return nil
		}
		f.parent = t.folds[parent.Run].stretchAt(parent.Step, st.Info.Started)
	}
	read := func(l protocol.Link) ([]byte, error) { return protocol.ReadPayload(ctx, t.Engine.Store, l) }
	f.offers = func(l protocol.Link) ([]string, error) {
		b, err := read(l)
		if err != nil {
			return nil, err
		}
		return namesIn(b)
	}
	if t.prompts {
		f.text = func(x protocol.Text) (string, error) { return x.Read(read) }
		f.prompt = func(step string) ([]attribute, error) { return t.sent(ctx, run, step) }
	}
	f.about = about(st)
	since := protocol.Seq(0)
	if st.Info.Forked.Defined() {
		if since, err = t.fork(ctx, run, f); err != nil {
			return err
		}
	}
	if st.Status() == protocol.Failed || st.Status() == protocol.Cancelled {
		f.failed = &status{Code: statusError}
		if t.prompts {
			f.failed.Message = st.Reason()
		}
	}
	for e, err := range t.Engine.Store.After(ctx, run, since) {
		if err == nil {
			err = f.add(&e)
		}
		if err != nil {
			return err
		}
	}
	t.folds[run] = f
	return f.end()
}

// namesIn are the names of a list of tools as it is recorded.
func namesIn(tools []byte) (names []string, err error) {
	var all []protocol.Tool
	if err = json.Unmarshal(tools, &all); err != nil {
		return nil, fmt.Errorf("recorded tools: %w: %w", protocol.ErrCorrupt, err)
	}
	for _, o := range all {
		names = append(names, o.Name)
	}
	return names, nil
}

// about is what the first stretch of a run says of it.
func about(st *rules.State) []attribute {
	out := []attribute{text("wf.status", string(st.Status()))}
	if code := st.Code(); code != "" {
		out = append(out, text("error.type", code))
	} else if st.Status() == protocol.Failed || st.Status() == protocol.Cancelled {
		out = append(out, text("error.type", string(st.Status())))
	}
	if r := st.Result(); r.Defined() {
		out = append(out, text("wf.result", r.String()))
	}
	if st.Info.Version != "" {
		out = append(out, text("wf.version", st.Info.Version))
	}
	return out
}

// fork links the spans of a fork to the run that it shares its first events with, and tells the last of these.
func (t *tree) fork(ctx context.Context, run protocol.RunID, f *fold) (shared protocol.Seq, err error) {
	base, shared, err := t.Engine.Store.Base(ctx, run)
	if err != nil || base == "" {
		return 0, err
	}
	st, err := t.Engine.State(ctx, base)
	if errors.Is(err, protocol.ErrUnknownRun) || errors.Is(err, protocol.ErrRunDeleted) {
		return shared, nil
	} else if err != nil {
		return 0, err
	}
	above, err := t.Engine.Above(ctx, base, st)
	if err != nil {
		return 0, err
	}
	trace, err := t.Engine.Trace(ctx, above[0])
	if err != nil {
		return 0, err
	}
	_, before, err := t.Engine.Store.Base(ctx, base) // its own events begin behind those that it shares itself
	f.links = []link{{TraceID: trace.String(), SpanID: trace.Span(base, "", 0, before+1).String(), Attributes: []attribute{text("wf.link", "fork_base"), text("wf.run", string(base))}}}
	return shared, err
}

// sent is what a visit was sent first, as an attribute.
func (t *tree) sent(ctx context.Context, run protocol.RunID, step string) ([]attribute, error) {
	sent, err := t.Messages(ctx, run, step)
	if err != nil {
		return nil, err
	}
	var out []message
	for _, m := range sent {
		x := message{Role: m.Role}
		if m.ToolCallID != "" {
			x.Parts = append(x.Parts, part{Type: "tool_call_response", ID: m.ToolCallID, Content: m.Content})
		} else if m.Content != "" {
			x.Parts = append(x.Parts, part{Type: "text", Content: m.Content})
		}
		for _, c := range m.ToolCalls {
			x.Parts = append(x.Parts, part{Type: "tool_call", ID: c.ID, Name: c.Name, Args: argsOf(c.Arguments)})
		}
		out = append(out, x)
	}
	a, err := encoded("gen_ai.input.messages", out)
	return []attribute{a}, err
}
