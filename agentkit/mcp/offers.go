package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"wf/agentkit/tool"
	"wf/protocol"
)

// Offers keeps what servers offered to the role of a run, so that a fan-out starts them once and
// all its items are offered the same. The zero Offers is ready; nil keeps nothing.
type Offers struct {
	mu    sync.Mutex
	kept  map[string]*offers
	order []string // of the keys, oldest first
}

// offersMax is how many lists are kept.
const offersMax = 64

type offers struct {
	free  chan struct{} // holds one token: the caller that takes it lists
	known bool
	tools []protocol.Tool
}

// Tools gives the tools that names stand for, of servers in that pool: as they were offered to
// that role of the run before, else as the servers offer them now. Of several callers at once
// one asks; an error is not kept.
func (o *Offers) Tools(ctx context.Context, run protocol.RunID, role string, p *Pool, names []string) ([]tool.Tool, error) {
	if o == nil || len(names) == 0 {
		return p.listed(ctx, names)
	}
	key, err := json.Marshal([]any{run, role, p.Dir, p.Servers, names})
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	e := o.entry(string(key))
	select {
	case <-e.free:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { e.free <- struct{}{} }()
	if e.known {
		out := make([]tool.Tool, 0, len(e.tools))
		for _, offer := range e.tools {
			t, ok := p.Recorded(offer)
			if !ok {
				return nil, fmt.Errorf("mcp: no server has the tool %s", offer.Name)
			}
			out = append(out, t)
		}
		return out, nil
	}
	tools, err := p.listed(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		e.tools = append(e.tools, protocol.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	e.known = true
	return tools, nil
}

func (o *Offers) entry(key string) *offers {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.kept[key]; e != nil {
		return e
	}
	if o.kept == nil {
		o.kept = map[string]*offers{}
	}
	if len(o.order) == offersMax {
		delete(o.kept, o.order[0])
		o.order = o.order[1:]
	}
	e := &offers{free: make(chan struct{}, 1)}
	e.free <- struct{}{}
	o.kept[key], o.order = e, append(o.order, key)
	return e
}

func (p *Pool) listed(ctx context.Context, names []string) ([]tool.Tool, error) {
	var out []tool.Tool
	for _, name := range names {
		tools, err := p.Tools(ctx, name)
		if err != nil {
			return nil, err
		}
		out = append(out, tools...)
	}
	return out, nil
}
