package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"wf/api"
	"wf/cas"
	"wf/hub/client"
	"wf/hub/queue"
	"wf/protocol"
	"wf/service/query"
)

// view reads a run to show it, with the answer as it came: all of it as JSON, its last steps to a
// person.
func (r *remote) view(ctx context.Context, run protocol.RunID) (*api.Run, []byte, error) {
	if r.asJSON() {
		return r.window(ctx, run, api.Window{})
	}
	return r.window(ctx, run, api.Window{Limit: lastSteps})
}

// status reads the status of a run, and which event is its newest.
func (r *remote) status(ctx context.Context, run protocol.RunID) (protocol.RunStatus, protocol.Seq, error) {
	v, _, err := r.window(ctx, run, api.Window{Limit: 1})
	if err != nil {
		return "", 0, err
	}
	return v.Status, v.Seq, nil
}

// window reads a run with some of its steps, in as many answers as that takes.
func (r *remote) window(ctx context.Context, run protocol.RunID, w api.Window) (*api.Run, []byte, error) {
	var raw []byte
	var steps []json.RawMessage
	for pages := 0; ; pages++ {
		limit := 0
		if w.Limit > 0 {
			limit = min(w.Limit-len(steps), api.MaxSteps)
		}
		part, err := r.api.RunWindow(ctx, run, limit, w.Before)
		if err != nil {
			return nil, nil, err
		}
		var page struct {
			Steps   []json.RawMessage `json:"steps"`
			Earlier protocol.Seq      `json:"earlier"`
		}
		if err := json.Unmarshal(part, &page); err != nil {
			return nil, nil, fmt.Errorf("run %s: %w", run, err)
		}
		if pages == 0 {
			raw = part
		}
		steps = append(page.Steps, steps...)
		if w.Before = page.Earlier; page.Earlier == 0 || w.Limit > 0 && len(steps) >= w.Limit {
			if pages > 0 {
				if raw, err = joined(raw, steps, page.Earlier); err != nil {
					return nil, nil, fmt.Errorf("run %s: %w", run, err)
				}
			}
			break
		}
	}
	v := &api.Run{}
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, nil, fmt.Errorf("run %s: %w", run, err)
	}
	return v, raw, nil
}

// joined is a run with the steps of several answers.
func joined(raw []byte, steps []json.RawMessage, earlier protocol.Seq) ([]byte, error) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(raw, &fields)
	if err != nil {
		return nil, err
	}
	if fields["steps"], err = json.Marshal(steps); err != nil {
		return nil, err
	}
	delete(fields, "earlier")
	if earlier > 0 {
		fields["earlier"] = json.RawMessage(strconv.FormatInt(int64(earlier), 10))
	} else {
		for _, name := range []string{"steps_total", "roles", "ways"} {
			delete(fields, name)
		}
	}
	return json.Marshal(fields)
}

// pass writes JSON of the server as the answer, formed as wf forms its own.
func (r *remote) pass(raw []byte) error {
	var b bytes.Buffer
	var err error
	if r.format == "json" {
		err = json.Indent(&b, bytes.TrimSpace(raw), "", "  ")
	} else {
		err = json.Compact(&b, raw)
	}
	if err != nil {
		return err
	}
	r.reported = true
	b.WriteByte('\n')
	_, err = r.out.Write(b.Bytes())
	return err
}

// conclude shows a run as wf run does when it ends, and ends as it did.
func (r *remote) conclude(ctx context.Context, run protocol.RunID) error {
	v, raw, err := r.view(ctx, run)
	if err != nil {
		return err
	}
	if err := r.outcome(v, raw); err != nil {
		return err
	}
	return outcome(v)
}

func (r *remote) outcome(v *api.Run, raw []byte) error {
	if r.asJSON() {
		return r.pass(raw)
	}
	return r.showOutcome(v)
}

// ls is wf ls; at a hub each run has its agent.
func (r *remote) ls(ctx context.Context, f *pflag.FlagSet, _ []string) error {
	limit, q, err := lsQuery(f)
	if err != nil {
		return err
	}
	var rows []api.Row
	var raws []json.RawMessage
	for {
		q.Limit = maxPage
		if limit > 0 {
			q.Limit = min(maxPage, limit-len(rows))
		}
		l, err := r.api.Runs(ctx, q)
		if err != nil {
			return err
		}
		if q.Before == "" {
			r.tellMissing(l)
		}
		for _, raw := range l.Items {
			var row api.Row
			if err := json.Unmarshal(raw, &row); err != nil {
				return fmt.Errorf("list of %s: %w", r.url, err)
			}
			rows, raws = append(rows, row), append(raws, raw)
		}
		if q.Before = l.Next; l.Next == "" || limit > 0 && len(rows) >= limit {
			break
		}
	}
	switch r.format {
	case "json":
		return r.answerJSON(map[string]any{"schema": "wf.runs/v1", "items": nonNil(raws)})
	case "jsonl":
		for _, raw := range raws {
			if err := line(r.out, raw); err != nil {
				return err
			}
		}
		return nil
	}
	if err := r.lsRows(rows, lsFlags{limit: limit, status: q.Status, tag: q.Tag, workflow: q.Workflow}); err != nil {
		return err
	}
	return r.tellQueue(ctx)
}

// tellQueue says which runs no agent has begun yet; only a hub has such.
func (r *remote) tellQueue(ctx context.Context) error {
	raw, err := r.api.Queue(ctx)
	if errors.Is(err, protocol.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var list struct{ Items []queue.Entry }
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("queue of %s: %w", r.url, err)
	}
	for _, e := range list.Items {
		if e.State != queue.Dead {
			r.progress("%s waits for an agent: wf cancel %s withdraws it", e.Workflow, e.ID)
		}
	}
	return nil
}

func (r *remote) answerJSON(v any) error { return r.app.answer(v) }

// lsQuery reads the flags of wf ls.
func lsQuery(f *pflag.FlagSet) (limit int, q client.Query, err error) {
	get := func(name string) string {
		if flag := f.Lookup(name); flag != nil {
			return flag.Value.String()
		}
		return ""
	}
	q = client.Query{Status: get("status"), Tag: get("tag"), Workflow: get("workflow"), All: get("all") == "true"}
	limit, err = f.GetInt("limit")
	return limit, q, err
}

// show is wf show.
func (r *remote) show(ctx context.Context, f *pflag.FlagSet, args []string) error {
	limit, err := f.GetInt("limit")
	if err != nil {
		return err
	}
	before, err := f.GetInt64("before")
	if err != nil {
		return err
	}
	w, err := r.checkWindow(api.Window{Limit: limit, Before: protocol.Seq(before)})
	if err != nil {
		return err
	}
	arg := latestUnless(args)
	if l, err := protocol.ParseLink(written(arg)); err == nil {
		data, err := (&remoteBlocks{api: r.api}).Block(ctx, l)
		if err != nil {
			return err
		}
		return r.writeBlock(l, data)
	}
	run, step, err := r.find(ctx, arg)
	if err != nil {
		return err
	}
	if step != "" {
		w = api.Window{}
	}
	v, raw, err := r.window(ctx, run, w)
	switch {
	case err != nil:
		return err
	case step == "" && r.asJSON():
		return r.pass(raw)
	case step == "":
		return r.showRun(v)
	}
	s, err := query.StepOf(v, step)
	if err != nil {
		return err
	}
	if r.asJSON() {
		return r.answerJSON(stepJSON{"wf.step/v1", v.ID, s})
	}
	atRest(v)
	return r.showStep(s)
}

// stepJSON is wf.step/v1.
type stepJSON struct {
	Schema string         `json:"schema"`
	Run    protocol.RunID `json:"run"`
	*api.Step
}

// remoteBlocks reads blocks of a server, and keeps those that were read. Each is hashed.
type remoteBlocks struct {
	api  *client.API
	held map[protocol.Link][]byte
}

// Block reads a block; one that does not hash to its name is an error wrapping
// protocol.ErrCorrupt.
func (b *remoteBlocks) Block(ctx context.Context, l protocol.Link) ([]byte, error) {
	if data, ok := b.held[l]; ok {
		return data, nil
	}
	data, err := b.api.Block(ctx, l)
	if err != nil {
		return nil, err
	}
	sum, err := l.CID().Prefix().Sum(data)
	if err != nil || !sum.Equals(l.CID()) {
		return nil, fmt.Errorf("the server sent %s for block %s: %w", sum, l, protocol.ErrCorrupt)
	}
	if b.held == nil {
		b.held = map[protocol.Link][]byte{}
	}
	if len(data) <= 1<<20 && len(b.held) < 1000 {
		b.held[l] = data
	}
	return data, nil
}

var _ protocol.Blocks = (*remoteBlocks)(nil)

// edges are those of the workflow of a run, read from its definition.
func (r *remote) edges(ctx context.Context, blocks protocol.Blocks, definition string) ([]protocol.Edge, error) {
	l, err := protocol.ParseLink(definition)
	if err != nil {
		return nil, err
	}
	raw, err := blocks.Block(ctx, l)
	if err != nil {
		return nil, err
	}
	var w protocol.Workflow
	if err := cas.Decode(raw, &w); err != nil {
		return nil, fmt.Errorf("definition %s: %w", l, err)
	}
	return w.Edges, nil
}
