package cas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// CopyOptions say what Copy takes over; the zero value is all of a store.
type CopyOptions struct {
	// Runs are copied, each with what it was forked from and its files; nil is all runs, with the memories, the journals of sinks and
	// the tombstones of the store.
	Runs []protocol.RunID
	// Kin is asked what comes with a run of Runs: the runs that it leads to, but for the one it was forked from, and scopes of
	// memories. nil is nothing.
	Kin func(ctx context.Context, run protocol.RunID) (runs []protocol.RunID, memories []string, err error)
	// Driven reports whether a process drives a run of the source. Such a run is copied up to its newest durable event. nil: none is.
	Driven func(ctx context.Context, run protocol.RunID) (bool, error)
	// Forward is called before a run that is there goes on to a new head; its error leaves that run where it is. done is called
	// when the head has moved, or has not. nil is none.
	Forward func(ctx context.Context, run protocol.RunID) (done func() error, err error)
	// Stands gives the Standing of a run that comes, or goes on, and the run whose tree of runs it is a part of; "" is itself, and a zero Standing is that it
	// is not known. Where Stands is nil the destination
	// does not know it before the run is driven.
	Stands func(ctx context.Context, run protocol.RunID) (x Standing, root protocol.RunID, err error)
	// Progress is called after each commit, from the goroutine of Copy; nil is not.
	Progress func(CopyProgress)
}

// CopyProgress is how far a copy has come.
type CopyProgress struct {
	Runs, Of      int // runs that were dealt with, of those that are known to be due
	Blocks, Bytes int64
}

// Copied is what became of a copy. A run is in one of the lists from Runs to Faulty, or counts as Same.
type Copied struct {
	Runs      []protocol.RunID // that were not there before
	Forwarded []protocol.RunID // that were there, and went on to the head of the source
	Same      int              // runs that were there already, with the same head
	Ahead     []protocol.RunID // that are further at the destination, and stay so
	Deleted   []protocol.RunID // that were deleted at the destination, and are not brought back
	Diverged  []Divergence     // of runs and memories: they stay as they are
	Faulty    []protocol.RunID // that are damaged at the source, or may not go on now: the error of Copy says why

	Memories   []string         // scopes that came or went on
	Sinks      []string         // with a journal that came or went on
	Own        []string         // heads of sinks, and where Runs are named of memories, that have another journal at the destination, and keep it
	Tombstones []protocol.RunID // runs that were deleted at the source, and cannot come back at the destination now
	Kept       []protocol.RunID // that were deleted at the source, and stay at the destination
	Driven     []protocol.RunID // that a process drove at the source: what came is their newest durable event

	Blocks, Bytes int64 // that were sent
}

// Divergence is a journal that went on in two ways.
type Divergence struct {
	Name     string // of the head
	From, To Head
}

// Error names both heads.
func (d Divergence) Error() error {
	what := strings.Replace(d.Name, "/", " ", 1)
	return &protocol.Error{Code: protocol.ErrHeadMoved.Code, Hint: "both are kept as they are; wf export writes one of them as an archive, which wf import --run NAME takes in beside the other",
		Message: fmt.Sprintf("%s has gone on in both stores: at the source its head is event %d, %s, and at the destination event %d, %s", what, d.From.Seq, d.From.Link, d.To.Seq, d.To.Link)}
}

// errSameStore is for a copy onto itself.
var errSameStore = protocol.ErrUsage.With("name two stores", "the source and the destination are the same store")

// copyTries is how often a run is looked at again that moves at the destination meanwhile.
const copyTries = 4

// Copy brings runs from one store to another of any kind, under their ids, with the same events and blocks. What is there is not
// sent again, and where nothing is new, heads alone are read. A run is verified as a whole before its head moves; its blocks are
// durable before that. So a copy that is killed leaves whole runs and blocks that nothing leads to, and the next one goes on
// from there.
//
// A run that went on at the destination stays as it is; one that went on in both is a Divergence. One that was deleted at the
// destination is not brought back. These and faulty runs do not keep the others away: the copy goes on to its end, and then
// returns an error for each divergence and fault, with what became of all runs. Any other error ends it at once.
func Copy(ctx context.Context, from, to Keeper, o CopyOptions) (*Copied, error) {
	c := &copier{from: from, to: to, o: o, due: map[protocol.RunID]bool{}}
	err := c.copy(ctx)
	if err != nil {
		err = fmt.Errorf("copy to %s: %w", to.Dir(), err)
	}
	return &c.out, errors.Join(append([]error{err}, c.faults...)...)
}

// copier is a copy that is under way.
type copier struct {
	from, to Keeper
	o        CopyOptions
	evidence Evidence // of from
	pause    func()
	v        *Verifier
	theirs   map[string]Head         // the heads of from, where all are copied; nil: each is read
	ours     map[string]Head         // those of to
	due      map[protocol.RunID]bool // that are to be copied, as far as is known; true: begun
	dealt    int                     // with
	memories []string
	out      Copied
	faults   []error
}

func (c *copier) copy(ctx context.Context) error {
	if c.from.Dir() == c.to.Dir() {
		return errSameStore
	}
	for _, s := range []Keeper{c.from, c.to} {
		release, err := hold(ctx, s)
		if s == c.from && errors.Is(err, protocol.ErrReadOnly) { // this user's collections cannot come either
			continue
		}
		if err != nil {
			return fmt.Errorf("keep collections of %s away: %w", s.Dir(), err)
		}
		defer release()
	}
	runs, sinks := c.o.Runs, []string(nil)
	if c.o.Runs == nil {
		var err error
		if c.theirs, err = headsByName(ctx, c.from); err == nil {
			c.ours, err = headsByName(ctx, c.to)
		}
		if err != nil {
			return err
		}
		runs, c.memories, sinks = c.all()
	}
	evidence, pause, done, err := bulkReader(ctx, c.from)
	if err != nil {
		return err
	}
	defer done()
	c.evidence, c.pause = evidence, pause
	for _, run := range runs {
		c.due[run] = false
	}
	for _, run := range runs {
		if err := c.withKin(ctx, run); err != nil {
			return err
		}
	}
	own := func(d Divergence) { c.out.Own = append(c.out.Own, d.Name) }
	diverged := c.diverged
	if c.o.Runs != nil { // others of the memory's runs went on elsewhere
		diverged = own
	}
	slices.Sort(c.memories)
	for _, scope := range slices.Compact(c.memories) {
		if err := c.apart(ctx, protocol.MemoryHead(scope), func() { c.out.Memories = append(c.out.Memories, scope) }, diverged); err != nil {
			return err
		}
	}
	for _, sink := range sinks {
		if err := c.apart(ctx, protocol.NotifyHead(sink), func() { c.out.Sinks = append(c.out.Sinks, sink) }, own); err != nil {
			return err
		}
	}
	return c.tombstones(ctx)
}

func headsByName(ctx context.Context, s Keeper) (map[string]Head, error) {
	all, err := s.Heads(ctx, "")
	out := make(map[string]Head, len(all))
	for _, h := range all {
		out[h.Name] = h
	}
	return out, err
}

// all lists what the source has.
func (c *copier) all() (runs []protocol.RunID, memories, sinks []string) {
	for name := range c.theirs {
		if run, ok := strings.CutPrefix(name, protocol.RunHead("")); ok {
			runs = append(runs, protocol.RunID(run))
		} else if scope, ok := strings.CutPrefix(name, protocol.MemoryHead("")); ok {
			memories = append(memories, scope)
		} else if sink, ok := strings.CutPrefix(name, protocol.NotifyHead("")); ok {
			sinks = append(sinks, sink)
		}
	}
	slices.Sort(runs)
	slices.Sort(sinks)
	return runs, memories, sinks
}

// head reads a head of the source, as it was at the beginning where all are copied.
func (c *copier) head(ctx context.Context, name string) (Head, error) {
	if c.theirs != nil {
		return c.theirs[name], nil
	}
	c.pause() // what is read by the evidence is as new as the head
	return c.from.Head(ctx, name)
}

// there reads a head of the destination; again is that what was read at the beginning is out of date.
func (c *copier) there(ctx context.Context, name string, again bool) (Head, error) {
	if c.ours != nil && !again {
		return c.ours[name], nil
	}
	return c.to.Head(ctx, name)
}

// withKin copies a run behind the one it was forked from, and then its children.
func (c *copier) withKin(ctx context.Context, run protocol.RunID) error {
	if c.due[run] {
		return nil
	}
	c.due[run] = true
	head, err := c.head(ctx, protocol.RunHead(run))
	if err != nil {
		return err
	}
	if !head.Link.Defined() {
		_, _, err := c.from.Tip(ctx, run)                 // says why
		return cmp.Or[error](err, protocol.ErrUnknownRun) // it came meanwhile
	}
	base, shared, err := c.from.Base(ctx, run)
	if err != nil {
		return err
	}
	if base != "" {
		h, err := c.head(ctx, protocol.RunHead(base))
		if err != nil {
			return err
		}
		if !h.Link.Defined() { // it was deleted: the fork has its events
			base = ""
		} else if err := c.withKin(ctx, base); err != nil {
			return err
		}
	}
	if err := c.run(ctx, run, head, base, shared); err != nil {
		return err
	}
	if c.o.Kin == nil || c.theirs != nil {
		return nil
	}
	children, memories, err := c.o.Kin(ctx, run)
	if err != nil {
		return err
	}
	c.memories = append(c.memories, memories...)
	for _, child := range children {
		if err := c.withKin(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

// run copies a run with its files. Its base, where it has one, was dealt with.
func (c *copier) run(ctx context.Context, run protocol.RunID, head Head, base protocol.RunID, shared protocol.Seq) error {
	defer func() {
		c.dealt++
		c.progress()
	}()
	stone, err := c.there(ctx, protocol.DeletedHead(run), false)
	if err != nil {
		return err
	}
	files, err := c.head(ctx, protocol.FilesHead(run))
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		deleted := stone.Link.Defined()
		if deleted && c.o.Runs != nil && slices.Contains(c.o.Runs, run) {
			_, _, err := c.to.Tip(ctx, run) // says by which user, and when
			return fmt.Errorf("at the destination: %w", cmp.Or[error](err, protocol.ErrRunDeleted))
		}
		if deleted {
			c.out.Deleted = append(c.out.Deleted, run)
			return nil
		}
		err := c.send(ctx, run, head, files, base, shared, try > 1)
		if err == nil {
			return c.driven(ctx, run)
		}
		c.v = nil // what it remembers as stored may not be
		switch moved := errors.Is(err, protocol.ErrHeadMoved) || errors.Is(err, protocol.ErrRunDeleted) || errors.Is(err, protocol.ErrUnknownRun); {
		case moved && try < copyTries:
			if stone, err = c.there(ctx, protocol.DeletedHead(run), true); err != nil {
				return err
			}
		case ctx.Err() == nil && (moved || errors.Is(err, protocol.ErrVerify) || errors.Is(err, protocol.ErrCorrupt) || errors.Is(err, protocol.ErrRunLive)):
			c.out.Faulty = append(c.out.Faulty, run)
			c.faults = append(c.faults, fmt.Errorf("copy run %s: %w", run, err))
			return nil
		default:
			return fmt.Errorf("run %s: %w", run, err)
		}
	}
}

// driven notes a run that came while a process drives it.
func (c *copier) driven(ctx context.Context, run protocol.RunID) error {
	last := func(of []protocol.RunID) bool { return len(of) > 0 && of[len(of)-1] == run }
	if c.o.Driven == nil || !last(c.out.Runs) && !last(c.out.Forwarded) {
		return nil
	}
	driven, err := c.o.Driven(ctx, run)
	if driven {
		c.out.Driven = append(c.out.Driven, run)
	}
	return err
}

func (c *copier) progress() {
	if c.o.Progress != nil {
		c.o.Progress(CopyProgress{Runs: c.dealt, Of: len(c.due), Blocks: c.out.Blocks, Bytes: c.out.Bytes})
	}
}

func (c *copier) diverged(d Divergence) {
	c.out.Diverged = append(c.out.Diverged, d)
	c.faults = append(c.faults, fmt.Errorf("copy: %w", d.Error()))
}

// What a journal of the source is to that of the destination.
type relation int

const (
	sameHead relation = iota
	behind            // the destination is, or has none
	further           // the destination is
	apart
)

// compare says what the journal under a head is to the one at the destination.
func (c *copier) compare(ctx context.Context, theirs, ours Head) (relation, error) {
	switch {
	case ours.Link == theirs.Link:
		return sameHead, nil
	case !ours.Link.Defined():
		return behind, nil
	}
	held, err := holds(ctx, c.from, theirs, ours)
	if err == nil && held {
		return behind, nil
	}
	if err == nil {
		held, err = holds(ctx, c.to, ours, theirs)
	}
	if err == nil && held {
		return further, nil
	}
	return apart, err
}

// send is one try to bring a run.
func (c *copier) send(ctx context.Context, run protocol.RunID, head, files Head, base protocol.RunID, shared protocol.Seq, again bool) (err error) {
	ours, err := c.there(ctx, head.Name, again)
	if err != nil {
		return err
	}
	was, err := c.compare(ctx, head, ours)
	if err != nil {
		return err
	}
	if was == apart {
		c.diverged(Divergence{head.Name, head, ours})
		return nil
	}
	var batch Batch
	var came []arrival
	c.begin()
	if was == behind {
		var chain []chainEvent
		if batch, chain, err = c.journal(ctx, head, ours, base, shared); err != nil {
			return err
		}
		came = append(came, arrived(run, chain, kinOf(chain)))
		if c.o.Stands != nil {
			x, root, err := c.o.Stands(ctx, run)
			if err != nil {
				return err
			}
			if batch.Moves[0].Root = root; x.Run != "" {
				batch.Runs = []Standing{x}
			}
		}
	}
	if err := c.files(ctx, files, &batch, again); err != nil {
		return err
	}
	if was == behind && ours.Link.Defined() && c.o.Forward != nil {
		done, err := c.o.Forward(ctx, run)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
	}
	if was == behind {
		if err := MarkArrivals(ctx, c.to, run); err != nil {
			return err
		}
	}
	if err := c.store(ctx, batch); err != nil {
		return err
	}
	if err := relate(ctx, c.to, came); err != nil {
		return err
	}
	switch {
	case was == sameHead:
		c.out.Same++
	case was == further:
		c.out.Ahead = append(c.out.Ahead, run)
	case ours.Link.Defined():
		c.out.Forwarded = append(c.out.Forwarded, run)
	default:
		c.out.Runs = append(c.out.Runs, run)
	}
	return nil
}

// apart copies a journal that belongs to no run.
func (c *copier) apart(ctx context.Context, name string, came func(), diverged func(Divergence)) error {
	head, err := c.head(ctx, name)
	if err != nil || !head.Link.Defined() {
		return err
	}
	for try := 1; ; try++ {
		ours, err := c.there(ctx, name, try > 1)
		var was relation
		if err == nil {
			was, err = c.compare(ctx, head, ours)
		}
		if err == nil && was == apart {
			diverged(Divergence{name, head, ours})
			return nil
		}
		if err != nil || was != behind {
			return err
		}
		c.begin()
		var batch Batch
		if batch, _, err = c.journal(ctx, head, ours, "", 0); err == nil {
			err = c.store(ctx, batch)
		}
		if err == nil {
			came()
			return nil
		}
		c.v = nil
		if !errors.Is(err, protocol.ErrHeadMoved) || try == copyTries {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

// tombstones brings those of runs that are not at the destination: so nothing brings them there later.
func (c *copier) tombstones(ctx context.Context) error {
	var names []string
	for name := range c.theirs {
		if run, ok := protocol.RunDeleted(name); ok && !c.ours[name].Link.Defined() {
			if c.ours[protocol.RunHead(run)].Link.Defined() {
				c.out.Kept = append(c.out.Kept, run)
			} else {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	slices.Sort(c.out.Kept)
	for part := range slices.Chunk(names, 100) {
		var all []Deletion
		for _, name := range part {
			run, _ := protocol.RunDeleted(name)
			l := c.theirs[name].Link
			data, err := c.from.Block(ctx, l)
			var d Deletion
			if err == nil {
				d, err = Rebury(run, Block{l, data})
			}
			if err != nil {
				return fmt.Errorf("the tombstone of run %s: %w", run, lost(err))
			}
			all = append(all, d)
		}
		if err := c.bury(ctx, all); err != nil {
			return err
		}
	}
	return nil
}

// bury writes tombstones together, or, where one of the runs has come meanwhile, one by one.
func (c *copier) bury(ctx context.Context, all []Deletion) error {
	err := c.to.Commit(ctx, Batch{Deletes: all})
	switch moved := errors.Is(err, protocol.ErrHeadMoved) || errors.Is(err, protocol.ErrRunDeleted); {
	case err == nil:
		for _, d := range all {
			c.out.Tombstones = append(c.out.Tombstones, d.Run())
		}
	case moved && len(all) > 1:
		for _, d := range all {
			if err := c.bury(ctx, []Deletion{d}); err != nil {
				return err
			}
		}
	case moved && errors.Is(err, protocol.ErrHeadMoved):
		c.out.Kept = append(c.out.Kept, all[0].Run())
	case moved: // by another process
	default:
		return fmt.Errorf("bury %d runs: %w", len(all), err)
	}
	return nil
}
