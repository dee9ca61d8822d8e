package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// groups are those of a run that is driven: of its visits, and how it leaves them.
type groups struct {
	root   protocol.RunID
	within []protocol.Use
	uses   map[string]string // steps that are in a group, with a slot or in its queue
	line   map[string]*want  // those in the queue
	flight map[string]flight // groups as the batches that are being written leave them
	look   bool              // a slot may be free
	looked time.Time         // when that was found out last
	news   chan struct{}     // the store has moved while a visit waits; nil until one does
}

// flight is a group that batches in flight change.
type flight struct {
	at groupAt
	n  int
}

// loadGroups finds what the store has of the visits of the run.
func (d *driver) loadGroups(ctx context.Context) (err error) {
	if len(d.s.Info.Groups) == 0 {
		return nil
	}
	g := &d.groups
	g.uses, g.line, g.flight = map[string]string{}, map[string]*want{}, map[string]flight{}
	if g.root, g.within, err = d.e.lineage(ctx, d.run, parentOf(d.s)); err != nil {
		return err
	}
	for step, w := range d.work {
		if w.waits { // another process wrote to the run meanwhile
			v, err := d.s.Visit(step)
			if err != nil {
				return err
			}
			g.line[step] = d.wantOf(v)
		}
	}
	for _, name := range distinct(d.s.Info.Groups) {
		at, err := d.e.group(ctx, name)
		if err != nil {
			return err
		}
		note := func(u protocol.Use) {
			if u.Run == d.run && u.Step != "" {
				g.uses[u.Step] = name
			}
		}
		for _, s := range at.Slots {
			for _, u := range s.Uses {
				note(u)
			}
		}
		for _, c := range at.Group.Group.Queue {
			note(c.Use)
		}
	}
	return nil
}

// wantOf is what a visit wants by the group of its role; nil where it has none.
func (d *driver) wantOf(v rules.Visit) *want {
	role := d.roleOf(v)
	name := d.s.Info.Groups[role.Name]
	if role.Concurrency == nil || name == "" {
		return nil
	}
	return newWant(protocol.Use{Run: d.run, Step: v.Step.String()}, d.groups.root, d.groups.within, role.Concurrency, name, false)
}

// landed forgets what a batch has changed: it is on disk.
func (g *groups) landed(b *batch) {
	for _, name := range b.groups {
		if f := g.flight[name]; f.n > 1 {
			g.flight[name] = flight{f.at, f.n - 1}
		} else {
			delete(g.flight, name)
		}
	}
}

// halt stops a visit; one that waits for a slot has nothing to stop.
func (d *driver) halt(w *worker, cause error) {
	if w.waits {
		w.stop(cause)
		delete(d.work, w.step)
		delete(d.groups.line, w.step)
		return
	}
	w.stop(cause)
}

// regroup is what a batch does to the groups of its visits.
type regroup struct {
	d     *driver
	b     *batch
	at    map[string]*groupAt
	left  []string
	names []string // of at, in order
}

// groupMoves has the visits that end with a batch leave their groups, and those that begin enter them or wait. What waited
// enters where there is room. Events that tell of it are added to the batch. A run that ends leaves all of its groups.
func (d *driver) groupMoves(ctx context.Context, b *batch) ([]cas.Move, error) {
	if len(d.s.Info.Groups) == 0 {
		return nil, nil
	}
	ctx = context.WithoutCancel(ctx)
	r := &regroup{d: d, b: b, at: map[string]*groupAt{}}
	b.enter, b.line, b.refuse, b.groups = nil, nil, nil, nil
	if len(b.drafts) == 0 && !d.groups.look {
		return nil, nil
	}
	if err := r.leave(ctx); err != nil {
		return nil, err
	}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	if err := r.admit(ctx); err != nil {
		return nil, err
	}
	if d.groups.look {
		d.groups.look, d.groups.looked = false, time.Now()
	}
	if len(b.drafts) == 0 {
		return nil, nil // nothing but what is to leave: with the next event
	}
	return r.done()
}

func (r *regroup) group(ctx context.Context, name string) (*groupAt, error) {
	if g := r.at[name]; g != nil {
		return g, nil
	}
	f, ok := r.d.groups.flight[name]
	if !ok {
		var err error
		if f.at, err = r.d.e.group(ctx, name); err != nil {
			return nil, err
		}
	}
	g := f.at
	r.at[name], r.names = &g, append(r.names, name)
	return &g, nil
}

// leave takes out the visits that are not performed any more, and the run where it has ended or gives its slot back.
func (r *regroup) leave(ctx context.Context) error {
	d := r.d
	for step, name := range d.groups.uses {
		if d.work[step] != nil || slices.Contains(r.b.begin, step) {
			continue
		}
		g, err := r.group(ctx, name)
		if err != nil {
			return err
		}
		g.Sweep(func(u protocol.Use) bool { return u == protocol.Use{Run: d.run, Step: step} })
		r.left = append(r.left, step)
	}
	c, name, status := d.s.Program().Workflow.Concurrency, d.s.Info.Groups[""], d.s.Status()
	if c == nil || name == "" || !status.Final() && (status != protocol.Suspended || !c.ReleaseOnSuspend) {
		return nil
	}
	g, err := r.group(ctx, name)
	if err == nil {
		g.Sweep(func(u protocol.Use) bool { return u == protocol.Use{Run: d.run} })
	}
	return err
}

// begin has the visits that begin enter the groups of their roles, or wait.
func (r *regroup) begin(ctx context.Context) error {
	d := r.d
	for _, step := range r.b.begin {
		v, err := d.s.Visit(step)
		if err != nil {
			return err
		}
		w := d.wantOf(v)
		if w == nil {
			continue
		}
		g, err := r.group(ctx, w.group)
		if err != nil {
			return err
		}
		ok := g.Has(w.Use) // it is performed again: the slot is still its own
		if !ok {
			if ok, err = d.e.room(ctx, g, w); err != nil {
				return err
			}
		}
		switch {
		case ok:
			err = r.entered(g, w)
		case w.refuse:
			if r.b.refuse == nil {
				r.b.refuse = map[string]error{}
			}
			why := busy(g, w)
			r.b.refuse[step] = &protocol.Failure{Err: why, ErrorInfo: protocol.ErrorInfo{Code: protocol.ErrGroupBusy.Code, Phase: "concurrency",
				Message: "the concurrency group of the role is busy"}, Detail: why.Error()}
		default:
			err = r.waits(g, w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *regroup) entered(g *groupAt, w *want) error {
	r.d.groups.uses[w.Step] = w.group
	return r.b.draft(r.d, w.Step, protocol.GroupEntered{Group: w.group, Ticket: g.Enter(w.Entry)})
}

func (r *regroup) waits(g *groupAt, w *want) error {
	var behind []string
	for _, u := range g.Holders() {
		behind = append(behind, u.String())
	}
	if r.b.line == nil {
		r.b.line = map[string]*want{}
	}
	r.b.line[w.Step] = w
	r.d.groups.uses[w.Step] = w.group
	return r.b.draft(r.d, w.Step, protocol.GroupWaiting{Group: w.group, Ticket: g.Queue(w.Entry), Behind: behind})
}

// admit has visits that wait enter, the oldest first, in groups that may have room.
func (r *regroup) admit(ctx context.Context) error {
	d := r.d
	if len(d.groups.line) == 0 || d.over || d.done {
		return nil
	}
	type waiting struct {
		w      *want
		g      *groupAt
		ticket int64
	}
	var line []waiting
	for step, w := range d.groups.line {
		if _, touched := r.at[w.group]; !touched && !d.groups.look || d.work[step] == nil || !d.work[step].waits || d.entering(step) {
			continue
		}
		g, err := r.group(ctx, w.group)
		if err != nil {
			return err
		}
		line = append(line, waiting{w, g, g.Ticket(w.Use)})
	}
	slices.SortFunc(line, func(a, b waiting) int { return cmp.Compare(a.ticket, b.ticket) })
	full := map[string]bool{}
	for _, x := range line {
		if full[x.w.group] {
			continue
		}
		ok, err := d.e.room(ctx, x.g, x.w)
		if err != nil {
			return err
		}
		if !ok {
			full[x.w.group] = true
			continue
		}
		r.b.enter = append(r.b.enter, x.w.Step)
		if err := r.entered(x.g, x.w); err != nil {
			return err
		}
	}
	return nil
}

// entering reports whether a batch in flight has a visit enter.
func (d *driver) entering(step string) bool {
	return slices.ContainsFunc(d.pipe.flight, func(b *batch) bool { return slices.Contains(b.enter, step) })
}

// done makes the moves.
func (r *regroup) done() (moves []cas.Move, err error) {
	d := r.d
	for _, name := range r.names {
		g := r.at[name]
		blocks, move, err := g.changes(nil)
		if err != nil {
			return nil, err
		}
		if len(move) == 0 {
			continue
		}
		r.b.blocks = append(r.b.blocks, blocks...)
		moves = append(moves, move...)
		g.head = move[0].New
		d.groups.flight[name] = flight{*g, d.groups.flight[name].n + 1}
		r.b.groups = append(r.b.groups, name)
	}
	for _, step := range r.left {
		delete(d.groups.uses, step)
	}
	for step, w := range r.b.line {
		d.groups.line[step] = w
	}
	for _, step := range r.b.enter {
		delete(d.groups.line, step)
	}
	return moves, nil
}

// hear has the driver woken by commits of any process, as long as ctx holds.
func (d *driver) hear(ctx context.Context) {
	if d.groups.news != nil || len(d.groups.line) == 0 {
		return
	}
	news := make(chan struct{}, 1)
	d.groups.news = news
	store := d.e.Store
	go func() {
		since, err := store.Changes(ctx)
		for err == nil {
			if since, err = store.AwaitChange(ctx, since); err == nil {
				select {
				case news <- struct{}{}:
				default:
				}
			}
		}
	}()
}

// leaveGroups takes the run out of its groups when its drive is over: its visits, and the run itself where it has ended.
// Where that fails, what waits finds out by itself.
func (d *driver) leaveGroups(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	ended := d.s.Status().Final()
	if len(d.s.Info.Groups) == 0 || !ended && len(d.groups.uses) == 0 {
		return
	}
	var err error
	for _, name := range distinct(d.s.Info.Groups) {
		err = errors.Join(err, d.e.leave(ctx, name, func(u protocol.Use) bool { return u.Run == d.run && (ended || u.Step != "") }))
	}
	if err != nil {
		d.e.warn(err)
	}
}
