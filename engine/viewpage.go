package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"wf/api"
	"wf/engine/rules"
	"wf/protocol"
)

// page is some steps of a run, which began one after another.
type page struct {
	first   protocol.Seq    // the step_started of the first one
	spans   []span          // the events among which all of them are; nil is all since first
	steps   map[string]bool // by id; nil is every step since first
	earlier protocol.Seq    // Window.Before of the steps before these; 0 where there are none
	most    int             // Window.Bytes
}

// span is a part of a journal, both ends included.
type span struct{ first, last protocol.Seq }

// backStep is how many events a page is looked for in at once, from the end of a journal.
const backStep = 512

// page finds the steps of a window. It reads the journal backwards, until it is sure of the first
// step_started of each.
func (e *Engine) page(ctx context.Context, run protocol.RunID, s *rules.State, w api.Window) (page, error) {
	end := s.Seq
	if w.Before > 0 {
		end = min(end, w.Before-1)
	}
	if w.Limit <= 0 && end == s.Seq {
		return page{first: 1}, nil
	}
	f := newFinder(s, end)
	for {
		if found, ok := f.newest(w.Limit); ok {
			return pageOf(found, w.Limit), nil
		}
		if err := f.read(ctx, e, run); err != nil {
			return page{}, err
		}
	}
}

// pageWith finds one step; of a fan-out, whose name is none of a step, the first item. A page without it where there is none.
func (e *Engine) pageWith(ctx context.Context, run protocol.RunID, s *rules.State, step string) (page, error) {
	p := page{first: s.Seq, steps: map[string]bool{step: true}}
	if v, err := s.Visit(step); err == nil {
		p.first = v.First
		return p, nil
	}
	f := newFinder(s, s.Seq)
	for f.from > 0 {
		if err := f.read(ctx, e, run); err != nil {
			return page{}, err
		}
		b := f.began[step]
		if b != nil && (f.from == 0 || b.sure) {
			p.first = b.seq
			return p, nil
		}
	}
	delete(p.steps, step)
	if first := f.began[protocol.FirstItem(step)]; first != nil {
		p.first, p.steps[first.step] = first.seq, true
	}
	return p, nil
}

// pageOf makes a page of the beginnings found, the newest first: one more than wanted tells that
// there are others.
func pageOf(found []*beginning, limit int) page {
	p := page{first: 1, steps: map[string]bool{}}
	if limit > 0 && len(found) > limit {
		found = found[:limit]
		p.earlier = found[limit-1].seq
	}
	for _, x := range found {
		p.steps[x.step], p.first = true, x.seq
	}
	return p
}

// finder looks for the beginnings of steps, from the end of a journal towards its start.
type finder struct {
	s     *rules.State
	from  protocol.Seq // what follows was read
	began map[string]*beginning
	sure  int                            // of began
	ended map[protocol.Link]bool         // records of steps
	after map[protocol.Link][]*beginning // what is sure once the end of a parent is met
}

func newFinder(s *rules.State, from protocol.Seq) finder {
	return finder{s: s, from: from, began: map[string]*beginning{}, ended: map[protocol.Link]bool{}, after: map[protocol.Link][]*beginning{}}
}

// beginning is the oldest step_started of a step that was met. It is the first one of all where
// sure: a visit that waits, fails or is cut off is started again later. The first step_started of a
// step comes after the end of each of its parents.
type beginning struct {
	step string
	seq  protocol.Seq
	sure bool
}

// read takes in the events before those that were read.
func (f *finder) read(ctx context.Context, e *Engine, run protocol.RunID) error {
	part, err := e.before(ctx, run, f.from)
	if err != nil {
		return err
	}
	f.from = max(0, f.from-backStep)
	for _, x := range slices.Backward(part) {
		data, err := dataOf(&x, protocol.EvStepStarted, protocol.EvStepCompleted)
		if err != nil {
			return fmt.Errorf("run %s: %w", run, err)
		}
		if d, ok := data.(protocol.StepCompleted); ok {
			f.ended[d.Record] = true
			for _, b := range f.after[d.Record] {
				f.settle(b)
			}
			delete(f.after, d.Record)
		}
		d, ok := data.(protocol.StepStarted)
		if !ok {
			continue
		}
		f.begin(&beginning{step: x.StepName(), seq: x.Seq}, d.Parents)
	}
	return nil
}

// begin takes in a step_started, in place of a later one of its step.
func (f *finder) begin(b *beginning, parents []protocol.Link) {
	if later := f.began[b.step]; later != nil && later.sure {
		f.sure--
	}
	f.began[b.step] = b
	if v, err := f.s.Visit(b.step); err == nil { // the state knows it
		b.seq = v.First
		f.settle(b)
		return
	}
	for _, p := range parents {
		if f.ended[p] {
			f.settle(b)
			return
		}
	}
	for _, p := range parents {
		f.after[p] = append(f.after[p], b)
	}
}

// settle notes that a beginning is the first one of its step.
func (f *finder) settle(b *beginning) {
	if !b.sure && f.began[b.step] == b {
		b.sure = true
		f.sure++
	}
}

// before are the last events of a run up to upper, backStep at most.
func (e *Engine) before(ctx context.Context, run protocol.RunID, upper protocol.Seq) (part []protocol.Entry, err error) {
	for x, err := range upTo(e.Store.After(ctx, run, max(0, upper-backStep)), upper) {
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", run, err)
		}
		part = append(part, x)
	}
	return part, nil
}

// newest gives the last limit+1 beginnings, the newest first; all of them where limit is 0. ok
// says that these are the ones: each is the first of its step, and lies within what was read.
func (f *finder) newest(limit int) (found []*beginning, ok bool) {
	all := f.from == 0
	if !all && limit > 0 && f.sure <= limit && f.sure < len(f.began) { // as in a long fan-out, whose parents ended long before
		return nil, false
	}
	found = slices.Collect(maps.Values(f.began))
	slices.SortFunc(found, func(a, b *beginning) int { return cmp.Compare(b.seq, a.seq) })
	if all || limit <= 0 || len(found) <= limit {
		return found, all
	}
	found = found[:limit+1]
	return found, !slices.ContainsFunc(found, func(b *beginning) bool { return !b.sure || b.seq <= f.from })
}
