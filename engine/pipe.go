package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"wf/api"
	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// pipe is what a run has to write and is not on disk yet, in order.
//
//	facts ─fold─► open ─decide, encode─► flight: sent to the writer, one transaction each ─► on disk
//
// The state takes facts in at once and so runs ahead of the disk: a batch is made ready while
// the one before it is synced, and waits at the writer when that is done. What can be seen
// from outside does not run ahead: a visit that acts is performed, and an emit is answered,
// when the batch it belongs to is on disk.
type pipe struct {
	open   *batch             // gathers facts; nil if there are none
	flight []*batch           // sent: the first is being written, the others wait for it
	vain   []*batch           // sent, and not written
	write  chan<- *cas.Staged // to the writer; nil before the first batch, and after one that failed
	landed chan landing
}

// ahead is how many batches are in flight at most.
const ahead = 2

// landing is how a commit ended.
type landing struct {
	entries []protocol.Entry
	err     error
}

func newPipe() pipe { return pipe{landed: make(chan landing, ahead)} }

func (p *pipe) empty() bool { return p.open == nil && len(p.flight) == 0 }

func (p *pipe) full() bool { return len(p.flight) == ahead }

// all are the batches of the pipe, oldest first.
func (p *pipe) all() []*batch {
	all := slices.Concat(p.vain, p.flight)
	if p.open != nil {
		all = append(all, p.open)
	}
	return all
}

// last is the newest batch that is not on disk yet, or nil.
func (p *pipe) last() *batch {
	if n := len(p.flight); p.open == nil && n > 0 {
		return p.flight[n-1]
	}
	return p.open
}

// batch is a part of a commit in the making.
type batch struct {
	facts      []cas.Draft // what happened; it stays true when another process writes first
	factBlocks []cas.Block
	poked      []string      // what was decided on besides the facts
	replies    []func(error) // to those that wait until it is on disk
	said       []said        // live output that came between the drafts, for the watcher

	drafts []cas.Draft // the facts, and what follows from them
	blocks []cas.Block
	begin  []string         // steps to be performed
	enter  []string         // those that waited for a slot, and have one with this batch
	line   map[string]*want // those of begin that wait for a slot
	refuse map[string]error // those of begin whose group is busy, and refuses them
	groups []string         // that are changed
	staged *cas.Staged
}

// said is live output behind the first drafts of a batch.
type said struct {
	after int
	api.Update
}

// add takes facts into the state and gathers them. reply, if not nil, is called with nil when they, and
// all before them, are on disk.
func (d *driver) add(facts []cas.Draft, blocks []cas.Block, reply func(error)) error {
	b := d.pipe.open
	if len(facts) == 0 {
		if last := d.pipe.last(); reply != nil && last != nil {
			last.replies = append(last.replies, reply)
		} else if reply != nil {
			reply(nil)
		}
		return nil
	}
	if b == nil {
		b = &batch{}
		d.pipe.open = b
	}
	b.facts, b.factBlocks = append(b.facts, facts...), append(b.factBlocks, blocks...)
	if reply != nil {
		b.replies = append(b.replies, reply)
	}
	b.add(d, blocks...)
	for now := d.e.now(); len(facts) > 0; facts = facts[1:] {
		if err := b.put(d, facts[0], now); err != nil {
			return err
		}
	}
	return nil
}

// push makes a batch of what is open, together with the starts of the visits that follow from
// it, and sends it off, unless enough is in flight. Visits that only take values over are
// performed at once.
func (d *driver) push(ctx context.Context) error {
	if d.pipe.full() {
		return nil
	}
	b, err := d.stage(ctx)
	if b == nil || err != nil {
		return err
	}
	d.pipe.send(ctx, d.j, b)
	d.performAll(b, true)
	return nil
}

// stage decides what follows from the state, and encodes. It returns nil if there is nothing
// to write.
func (d *driver) stage(ctx context.Context) (*batch, error) {
	if d.pipe.open == nil {
		d.pipe.open = &batch{}
	}
	b := d.pipe.open
	if !d.over && !d.done {
		b.poked = d.poke
		if err := d.decide(ctx, b); err != nil {
			return nil, err
		}
		if err := d.conclusion(ctx, b); err != nil {
			return nil, err
		}
	}
	moves, err := d.groupMoves(ctx, b)
	if err != nil {
		return nil, err
	}
	if len(b.drafts) == 0 {
		d.pipe.open = nil
		return nil, nil
	}
	if b.staged, err = d.j.Stage(d.s.TS, b.drafts, b.blocks, d.snapshot(b.drafts)...); err != nil {
		return nil, err
	}
	b.staged.With(moves...)
	d.stand(b.staged)
	d.pipe.open = nil
	for _, step := range b.begin {
		w := d.newWorker(ctx, step)
		w.refused = b.refuse[step]
		if _, w.waits = b.line[step]; w.waits {
			d.shut(step) // it may wait for hours
		}
		d.work[step] = w
	}
	return b, nil
}

// conclusion ends the run in the commit of the visit that was its last.
func (d *driver) conclusion(ctx context.Context, b *batch) error {
	end := d.plan.End
	if len(d.work)+len(b.begin) > 0 || len(b.facts) == 0 || d.breach != nil || d.unready != nil || end == nil || d.s.Status().Final() {
		return nil
	}
	if end.Status != protocol.Done && end.Status != protocol.Failed && (d.s.Closing == nil || end.Status != protocol.Cancelled) {
		return nil
	}
	x, blocks, last, err := d.ending(end)
	if err != nil {
		return err
	}
	b.add(d, blocks...)
	d.done, d.last = last, last
	if err := b.draft(d, x.Step, x.Data); err != nil || last {
		return err
	}
	return d.decide(ctx, b)
}

// send hands a batch to the writer, which is there from the first one on.
func (p *pipe) send(ctx context.Context, j *cas.Journal, b *batch) {
	if p.write == nil {
		write := make(chan *cas.Staged, ahead)
		p.write = write
		go writer(context.WithoutCancel(ctx), j, write, p.landed)
	}
	p.flight = append(p.flight, b)
	p.write <- b.staged
}

// writer commits batches in their order. Behind one that failed it writes nothing more: what
// was made ready behind it is void.
func writer(ctx context.Context, j *cas.Journal, batches <-chan *cas.Staged, landed chan<- landing) {
	var l landing
	for st := range batches {
		if l.err == nil {
			l.entries, l.err = j.Commit(ctx, st)
		}
		landed <- l
	}
}

// close ends the writer, once it has come to the end of what was sent. What did not land is
// then in vain.
func (p *pipe) close() {
	for range p.flight {
		<-p.landed
	}
	p.vain, p.flight = append(p.vain, p.flight...), nil
	if p.write != nil {
		close(p.write)
		p.write = nil
	}
}

// land is called when a commit is over: it informs senders and watchers, starts the next commit, and
// performs the visits that have their starts on disk now.
func (d *driver) land(ctx context.Context, l landing) error {
	p := &d.pipe
	b := p.flight[0]
	p.flight = p.flight[1:]
	if l.err != nil {
		p.vain = append(p.vain, b)
		p.close()
		if errors.Is(l.err, protocol.ErrHeadMoved) {
			return d.rebase(ctx)
		}
		return l.err
	}
	d.notify(b, l.entries)
	if d.stored != nil {
		d.stored(l.entries, b.drafts)
	}
	for _, c := range b.replies {
		c(nil)
	}
	d.fresh.trim(d.pipe.all)
	d.groups.landed(b)
	if p.open != nil {
		if err := d.push(ctx); err != nil {
			return err
		}
	}
	d.performAll(b, false)
	return nil
}

// performAll performs the visits that begin with a batch: those that only take values over,
// or the others.
func (d *driver) performAll(b *batch, inPlace bool) {
	for _, step := range b.begin {
		if w := d.work[step]; w != nil && w.inPlace == inPlace && !w.waits {
			d.perform(w)
		}
	}
	if inPlace {
		return
	}
	for _, step := range b.enter {
		if w := d.work[step]; w != nil && w.waits {
			w.waits = false
			d.perform(w)
		}
	}
}

// flush waits until all is on disk.
func (d *driver) flush(ctx context.Context) error {
	for {
		if err := d.push(ctx); err != nil {
			return err
		}
		if len(d.pipe.flight) == 0 {
			return nil
		}
		if err := d.land(ctx, <-d.pipe.landed); err != nil {
			return err
		}
	}
}

// rebase is for when another process wrote to the journal first: it folds the journal anew
// and adds the facts again. What was decided in vain is decided anew. A run that has ended
// meanwhile takes no more facts. Live output among them is dropped: the events to come hold it.
func (d *driver) rebase(ctx context.Context) error {
	again, vain := &batch{}, map[string]bool{}
	for _, b := range d.pipe.all() {
		again.replies = append(again.replies, b.replies...)
		d.poke = append(d.poke, b.poked...)
		for _, x := range b.facts {
			if !vain[x.Step] { // else performed in place, before its start was written
				again.facts = append(again.facts, x)
			}
		}
		for _, step := range b.begin {
			vain[step] = true
			d.unprepare(step)
			d.shut(step)
			if w := d.work[step]; w != nil {
				w.stop(nil)
				delete(d.work, step)
			}
		}
		again.factBlocks = append(again.factBlocks, b.factBlocks...)
	}
	d.ready = slices.DeleteFunc(d.ready, func(r report) bool { return vain[r.step] })
	if d.done {
		d.done, d.last = false, false
	}
	d.pipe = newPipe()
	d.pipe.open = again // until they are added: abandon answers them
	if err := d.load(ctx); err != nil {
		return err
	}
	d.pipe.open = nil
	again.facts = slices.DeleteFunc(again.facts, d.late)
	if err := d.add(again.facts, again.factBlocks, nil); err != nil {
		d.pipe.open.replies = again.replies
		return err
	}
	for _, c := range again.replies {
		if err := d.add(nil, nil, c); err != nil {
			return err
		}
	}
	return d.push(ctx)
}

// late reports whether a fact came too late: the run has ended meanwhile, or what a timer is about was answered.
func (d *driver) late(x cas.Draft) bool {
	if d.s.Status().Final() {
		return true
	}
	switch x.Data.(type) {
	case protocol.TimerFired, protocol.Escalated, protocol.Reminded:
		v, err := d.s.Visit(x.Step)
		return err == nil && v.Mode != rules.Waits || d.passed(x.Step)
	case protocol.Usage:
		return false
	case protocol.Closing, protocol.CancelAsked, protocol.ClosingSkipped, protocol.Finished, protocol.LimitReached: // decided anew
		return d.s.Closing != nil
	case protocol.SuspendedBy:
		return d.s.Closing != nil && x.Data.(protocol.SuspendedBy).Reason != protocol.ByInterrupt
	}
	return x.Step != "" && d.passed(x.Step)
}

// say passes live output to the watcher, after the events before it: those that are not on disk
// yet go first.
func (d *driver) say(x api.Update) {
	if d.e.Watch == nil {
		return
	}
	if last := d.pipe.last(); last != nil {
		last.said = append(last.said, said{len(last.drafts), x})
		return
	}
	d.e.Watch(x)
}

// notify passes a batch that is on disk to the watcher.
func (d *driver) notify(b *batch, entries []protocol.Entry) {
	sent, of := 0, aboutRun(d.run, d.s)
	for _, x := range b.said {
		d.e.notify(of, entries[sent:x.after], b.drafts[sent:x.after])
		sent = x.after
		d.e.Watch(x.Update)
	}
	d.e.notify(of, entries[sent:], b.drafts[sent:])
}

// snapshotEvery is the number of events after which the folded state is stored again, at the
// earliest.
const snapshotEvery = 256

// since counts what was journaled behind the last snapshot.
type since struct{ events, bytes int }

// eventSize is about how many bytes an event has, for those of earlier drives.
const eventSize = 200

// snapshot is the folded state, to be stored with more events, now and then and at the end: when
// as many bytes were journaled as the last one had. So what snapshots cost in all grows with the
// journal, and what a resume folds behind one with its size. It is derived: where it cannot be
// made the run goes on without, and a resume folds more.
func (d *driver) snapshot(drafts []cas.Draft) []cas.Derived {
	d.since.events += len(drafts)
	for _, x := range drafts {
		d.since.bytes += x.Size()
	}
	if (d.since.events < snapshotEvery || d.since.bytes < d.snapshotSize) && !d.last {
		return nil
	}
	d.since = since{}
	data, err := cas.Marshal(d.s.Snapshot())
	if err != nil {
		d.e.warn(fmt.Errorf("run %s, event %d: its state cannot be stored, a resume reads the journal from further back: %w", d.run, d.s.Seq, err))
		return nil
	}
	d.snapshotSize = len(data)
	return []cas.Derived{{Key: snapshotKey(d.run), Data: data}}
}
