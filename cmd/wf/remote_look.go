package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"wf/api"
	"wf/cas"
	"wf/hub/client"
	"wf/hub/queue"
	"wf/protocol"
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

// tellList names the agents that did not list their runs, and the jobs that no agent has begun.
func (r *remote) tellList(ctx context.Context, p *api.Page) error {
	if len(p.Missing) > 0 {
		r.progress("the runs of %s are not listed: no answer from there", strings.Join(p.Missing, ", "))
	}
	if r.asJSON() {
		return nil
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
