package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// pastCache keeps the records of a run, each with all that it goes on from: for a visit those are
// read that came since the visits before it. It is safe for concurrent use.
type pastCache struct {
	run     protocol.RunID
	mu      sync.Mutex
	records *protocol.Records
	starts  map[protocol.Link]bool // parents that are no records
	bytes   int                    // of the records
}

// ancestors has every ancestor record of a visit, and maybe others.
func (c *pastCache) ancestors(lib *library, read Reader, of protocol.Past) (*protocol.Records, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var fresh []protocol.Past
	seen := map[protocol.Link]bool{}
	todo := append([]protocol.Link{of.Resumes}, of.Parents...)
	for len(todo) > 0 {
		l := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !l.Defined() || seen[l] || c.starts[l] {
			continue
		}
		seen[l] = true
		if _, _, there := c.records.Get(l); there {
			continue
		}
		p, err := loadPast(lib, read, l)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", l.Short(), err)
		}
		if p == nil {
			if c.starts == nil {
				c.starts = map[protocol.Link]bool{}
			}
			c.starts[l] = true
			continue
		}
		fresh = append(fresh, *p)
		todo = append(todo, p.Parents...)
		todo = append(todo, p.Resumes)
		if p.Compaction != nil {
			todo = append(todo, p.Compaction.Prior, p.Compaction.Covers)
		}
	}
	for i := range fresh {
		c.bytes += sizeOfPast(&fresh[i])
	}
	c.records = c.records.With(fresh...)
	return c.records, nil
}

// sizeOfPast is about how many bytes a record takes in memory, together with what messages say of it.
func sizeOfPast(p *protocol.Past) int {
	n := 1024 + 2*(len(p.EdgePrompt)+len(p.Inject)) + len(p.Text) + len(p.Data)
	if p.Compaction != nil {
		n += 2 * len(p.Compaction.Summary)
	}
	return n
}

// pasts keeps the records of the runs that were driven last: a chat is driven anew for each answer.
type pasts struct {
	mu   sync.Mutex
	list []*pastCache // the one driven last at the end
}

// maxPasts bounds, in bytes, the records of runs that are not driven.
const maxPasts = 32 << 20

// take gives what is known of a run, to its driver alone.
func (p *pasts) take(run protocol.RunID) *pastCache {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.list, func(x *pastCache) bool { return x.run == run })
	if i < 0 {
		return &pastCache{run: run}
	}
	past := p.list[i]
	p.list = slices.Delete(p.list, i, i+1)
	return past
}

// rest takes back what the driver of a run knows. Of all runs the one that was driven least lately
// is forgotten first.
func (p *pasts) rest(past *pastCache) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, past)
	total, first := 0, len(p.list)
	for first > 0 && total+p.list[first-1].size() <= maxPasts {
		first--
		total += p.list[first].size()
	}
	p.list = slices.Delete(p.list, 0, first)
}

func (c *pastCache) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// pastOf is what messages say of a record, but for its payloads.
func pastOf(o *rules.Opened, r *protocol.StepRecord) protocol.Past {
	p := protocol.Past{Role: r.Role, Visit: r.Visit, Parents: r.Parents, Resumes: r.Resumes, EdgePrompt: r.EdgePrompt, Status: r.Status, Artifacts: r.Artifacts}
	if r.Edge >= 0 && r.Edge < len(o.Program.Workflow.Edges) {
		p.Mentions = o.Program.Workflow.Edges[r.Edge].Mentions
	}
	if r.Item != nil {
		p.Item = &r.Item.Index
	}
	return p
}

// loadPast reads a StepRecord or Compaction with its payloads; nil for a Start.
func loadPast(lib *library, read Reader, l protocol.Link) (*protocol.Past, error) {
	b, err := read(l)
	if err != nil {
		return nil, err
	}
	var kind struct {
		Kind string `cbor:"kind"`
	}
	if err := cas.Decode(b, &kind); err != nil {
		return nil, err
	}
	text := func(l protocol.Link) string {
		if err != nil || !l.Defined() {
			return ""
		}
		var t []byte
		t, err = protocol.PayloadBytes(read, l)
		return string(t)
	}
	switch kind.Kind {
	case protocol.KindStart:
		return nil, nil
	case protocol.KindCompaction:
		var c protocol.Compaction
		if err := cas.Decode(b, &c); err != nil {
			return nil, err
		}
		p := &protocol.Past{CID: l, Role: c.Role, Compaction: &protocol.PastCompaction{Prior: c.Prior, Covers: c.Covers, Summary: text(c.Summary)}, Inject: text(c.Inject)}
		return p, err
	case protocol.KindStep:
	default:
		return nil, fmt.Errorf("a %q block among the ancestors: %w", kind.Kind, protocol.ErrCorrupt)
	}
	var r protocol.StepRecord
	if err := cas.Decode(b, &r); err != nil {
		return nil, err
	}
	o, oerr := lib.open(r.Start, read)
	if oerr != nil {
		return nil, oerr
	}
	p := pastOf(o, &r)
	p.CID, p.Inject, p.Text = l, text(r.Inject), text(r.Output)
	if data := text(r.Data); data != "" {
		p.Data = protocol.JSON(data)
	}
	if info := text(r.Error); info != "" && err == nil {
		p.Error = &protocol.ErrorInfo{}
		err = json.Unmarshal([]byte(info), p.Error)
	}
	return &p, err
}
