package cas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"wf/protocol"
)

// Pins tell the runs of a store that are the user's own from those that came from elsewhere: by an
// archive, a clone, a copy that was put back. A run is the user's own where its newest event
// descends from the head that was noted of it outside of the store; nothing inside the store
// decides. In a database all runs are, as those who may write it are one user, but for those that were put back, and those that came there from
// elsewhere: they have a mark in it, see Marks. Its methods are safe for concurrent use.
type Pins struct {
	s     Pinned
	state string // "": nothing can be noted, and only what this process began is known

	mu   sync.Mutex
	seen PinnedHeads     // as the files were at the stamp
	at   stamp           // of seen
	last map[string]Seen // heads that this process has written, or looked at, and that are the user's own
}

// stamp is the state of the two files of pinned heads; nil for one that is not there.
type stamp [2]fs.FileInfo

func (a stamp) equal(b stamp) bool {
	for i, x := range a {
		y := b[i]
		if x == nil || y == nil {
			if x != y {
				return false
			}
		} else if !os.SameFile(x, y) || x.Size() != y.Size() || !x.ModTime().Equal(y.ModTime()) {
			return false
		}
	}
	return true
}

// Pinned is what pins ask of a store of any kind: its journals, and Dir, by which their files tell it from others.
type Pinned interface {
	protocol.Source
	Tip(ctx context.Context, run protocol.RunID) (protocol.Link, protocol.Seq, error)
	Dir() string
}

// Marks is a store whose runs began on several machines, so that what one of them has noted outside of it tells nothing: the store itself has a mark for each run
// that came from elsewhere, for as long as it was not adopted.
type Marks interface {
	// Mark marks runs, whether they are there or are about to come. It is durable before what is committed later.
	Mark(ctx context.Context, runs []protocol.RunID) error
	Unmark(ctx context.Context, runs []protocol.RunID) error
	Marked(ctx context.Context, run protocol.RunID) (bool, error)
	// AllMarked are the runs with a mark, as they were a moment ago.
	AllMarked(ctx context.Context) (map[protocol.RunID]bool, error)
}

// MarkArrivals has a store that keeps marks note that runs come from elsewhere, before they do. Of another one runs that nobody noted are from elsewhere anyway.
func MarkArrivals(ctx context.Context, into any, runs ...protocol.RunID) error {
	if m, ok := into.(Marks); ok && len(runs) > 0 {
		return m.Mark(ctx, runs)
	}
	return nil
}

// NewPins are the pins of a store that are kept in stateDir, see StateDir.
func NewPins(s Pinned, stateDir string) *Pins {
	return &Pins{s: s, state: stateDir, last: map[string]Seen{}}
}

// Begin notes the first event of a run that this process is about to begin, or has forked, before
// anything of it is performed. It returns when that is on disk; of many callers one waits for the disk. Where it cannot be noted the run is the user's own in this process
// alone, and the error says so.
func (p *Pins) Begin(ctx context.Context, run protocol.RunID, head protocol.Link, seq protocol.Seq) error {
	err := p.BeginAll(ctx, []Head{{Name: protocol.RunHead(run), Link: head, Seq: seq}})
	if p.state == "" {
		err = fmt.Errorf("run %s is not noted outside of the store: %w", run, err)
	}
	return err
}

// BeginAll is Begin for several runs, by their heads.
func (p *Pins) BeginAll(ctx context.Context, all []Head) error {
	err := error(errNoState)
	if p.state != "" {
		err = changePinned(context.WithoutCancel(ctx), p.state, p.s.Dir(), func(w *PinnedHeads) { w.begin(all) }, all...)
	}
	if err != nil {
		for _, h := range all {
			p.know(h)
		}
	}
	return err
}

var errNoState = &protocol.Error{Code: protocol.ErrForeign.Code, Message: "there is no state directory for it", Hint: "set HOME or XDG_STATE_HOME"}

// Drove notes that this process wrote a run up to head, after Own had allowed it.
func (p *Pins) Drove(run protocol.RunID, head protocol.Link, seq protocol.Seq) {
	p.know(Head{Name: protocol.RunHead(run), Link: head, Seq: seq})
}

func (p *Pins) know(h Head) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[h.Name] = Seen{Head: h.Link, Seq: h.Seq}
}

// Own is nil where a run is the user's own. One that came from elsewhere, or that other
// programs changed, is an error wrapping protocol.ErrForeign; one that is older than what was seen of it an
// error wrapping protocol.ErrRolledBack. It reads the events since the last look, and none where
// the run did not move.
func (p *Pins) Own(ctx context.Context, run protocol.RunID) error {
	link, seq, err := p.s.Tip(ctx, run)
	if err != nil {
		return err
	}
	h := Head{Name: protocol.RunHead(run), Link: link, Seq: seq}
	from, known, err := p.before(h)
	if err != nil || known {
		return err
	}
	if m, ok := p.s.(Marks); ok {
		marked, err := m.Marked(ctx, run)
		if err == nil && marked {
			err = foreign(run, "run %s came from elsewhere, as an archive or a copy, and was not adopted since", run)
		}
		if err != nil {
			return err
		}
	}
	if len(from) == 0 {
		if inDatabase(p.s.Dir()) {
			return p.shared(run, h)
		}
		if p.state == "" {
			return fmt.Errorf("run %s may be from elsewhere: %w", run, errNoState)
		}
		return foreign(run, "run %s came from elsewhere: this user has not begun it on this machine", run)
	}
	first, last := from[0], from[len(from)-1]
	if h.Seq < first.Seq {
		return p.older(run, h, first)
	}
	found := false
	for e, err := range p.s.After(ctx, run, first.Seq-1) {
		switch {
		case err != nil:
			return err
		case slices.Contains(from, Seen{Head: e.CID, Seq: e.Seq}):
			found = true
		case !found && e.Seq >= last.Seq:
			return foreign(run, "run %s has another history than the one that was seen of it", run)
		case found && (e.Type == protocol.EvForked || e.Type == protocol.EvRunStarted):
			return foreign(run, "run %s goes on under a definition that another program wrote into it, by event %d", run, e.Seq)
		}
		h.Link, h.Seq = e.CID, e.Seq
	}
	if !found {
		return p.older(run, h, last)
	}
	p.know(h)
	return nil
}

// shared is Own for a run of a database that was neither begun nor driven here: those who may write a database are one user, whose workers
// on other machines begin runs too. One that a verification saw further was put back.
func (p *Pins) shared(run protocol.RunID, h Head) error {
	if found := p.found(h); found.Seq > h.Seq {
		return p.older(run, h, found)
	}
	p.know(h)
	return nil
}

// found is where a verification saw a run.
func (p *Pins) found(h Head) Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.Found[h.Name]
}

// older is the error of a run that was seen further than it is now.
func (p *Pins) older(run protocol.RunID, h Head, seen Seen) error {
	return protocol.ErrRolledBack.With(
		fmt.Sprintf("put the newer copy of the store back; or go on from here with wf store adopt %s, and what came after event %d is done again", run, h.Seq),
		"run %s ends with event %d, and was seen with event %d: the store in %s was put back to an older copy", run, h.Seq, seen.Seq, p.s.Dir())
}

func foreign(run protocol.RunID, format string, args ...any) error {
	return protocol.ErrForeign.With(fmt.Sprintf("look at it with wf show %s; wf store adopt %s lets it go on here", run, run), format, args...)
}

// before are the events of which a run must hold one, by their seq: as it was seen last, or as it
// was begun since; known tells that it is as it was seen.
func (p *Pins) before(h Head) (from []Seen, known bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(); err != nil {
		return nil, false, err
	}
	pin, own := p.seen.Heads[h.Name]
	last, found := p.last[h.Name], p.seen.Found[h.Name]
	begun := p.seen.Begun[h.Name]
	switch {
	case !own && len(begun) == 0 && found.Head.Defined():
		return nil, false, nil // disowned, maybe after this process had known it
	case pin.Head == h.Link:
		p.last[h.Name] = pin // adopted, maybe behind what this process had seen
		return nil, true, nil
	case last.Head == h.Link:
		return nil, true, nil
	case last.Seq > pin.Seq:
		pin, own = last, true
	}
	if own && found.Seq > pin.Seq && found.Seq > h.Seq {
		pin = found // a verification saw it further
	}
	from = slices.Clone(begun)
	if own {
		from = append(from, pin)
	}
	slices.SortFunc(from, func(a, b Seen) int { return cmp.Compare(a.Seq, b.Seq) })
	return from, false, nil
}

// load reads what was noted, where that has changed. The caller holds mu.
func (p *Pins) load() error {
	if p.state == "" {
		return nil
	}
	at, err := p.stamp()
	if err != nil || p.seen.Heads != nil && at.equal(p.at) {
		return err
	}
	seen, err := LoadPinnedHeads(p.state, p.s.Dir())
	if err == nil {
		p.seen, p.at = seen, at
	}
	return err
}

// stamp looks at the files.
func (p *Pins) stamp() (at stamp, err error) {
	path := pinnedFile(p.state, storeName(p.s.Dir()))
	for i, path := range []string{path, begunFile(path)} {
		info, err := os.Stat(path)
		if err == nil {
			at[i] = info
		} else if !errors.Is(err, fs.ErrNotExist) {
			return at, fmt.Errorf("last seen heads: %w", err)
		}
	}
	return at, nil
}

// Changed reports whether anything was noted since the last look of Own.
func (p *Pins) Changed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == "" {
		return false
	}
	at, err := p.stamp()
	return err != nil || !at.equal(p.at)
}

// Noted reports whether a run was ever noted as the user's own, without a look at its events: what
// lists of many runs show.
func (p *Pins) Noted(ctx context.Context, h Head) (bool, error) {
	from, known, err := p.before(h)
	if m, ok := p.s.(Marks); ok && err == nil && !known {
		all, err := m.AllMarked(ctx)
		if err != nil || all[protocol.RunOf(h.Name)] {
			return false, err
		}
	}
	if len(from) == 0 && err == nil && inDatabase(p.s.Dir()) {
		return known || p.found(h).Seq <= h.Seq, nil
	}
	return known || len(from) > 0 && from[0].Seq <= h.Seq, err
}

// Note keeps the newest heads of runs that are the user's own; others are left alone.
func (p *Pins) Note(ctx context.Context, runs ...protocol.RunID) error {
	if p.state == "" {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	var heads []Head
	var errs []error
	for _, run := range runs {
		err := p.Own(ctx, run)
		switch {
		case errors.Is(err, protocol.ErrForeign), errors.Is(err, protocol.ErrRolledBack), errors.Is(err, protocol.ErrUnknownRun), errors.Is(err, protocol.ErrRunDeleted):
			continue
		case err != nil:
			errs = append(errs, err)
			continue
		}
		p.mu.Lock()
		last, ok := p.last[protocol.RunHead(run)]
		p.mu.Unlock()
		if ok {
			heads = append(heads, Head{Name: protocol.RunHead(run), Link: last.Head, Seq: last.Seq})
		}
	}
	return errors.Join(append(errs, See(ctx, p.state, p.s.Dir(), heads))...)
}

// Adopt takes runs for the user's own as they are now, whatever was seen of them.
func (p *Pins) Adopt(ctx context.Context, heads []Head) error {
	if p.state == "" {
		return errNoState
	}
	if err := Adopt(ctx, p.state, p.s.Dir(), heads); err != nil {
		return err
	}
	if m, ok := p.s.(Marks); ok {
		runs := make([]protocol.RunID, len(heads))
		for i, h := range heads {
			runs[i] = protocol.RunOf(h.Name)
		}
		if err := m.Unmark(ctx, runs); err != nil {
			return err
		}
	}
	for _, h := range heads {
		p.know(h)
	}
	return nil
}

// Disown takes runs for foreign from now on: other programs wrote what comes next in them, or they are about to come. In a database all machines do.
func (p *Pins) Disown(ctx context.Context, runs []protocol.RunID) error {
	if _, marks := p.s.(Marks); inDatabase(p.s.Dir()) && !marks && len(runs) > 0 {
		return protocol.ErrUsage.With("bring them into a store in a directory", "runs from elsewhere cannot be told from others in %s", p.s.Dir())
	}
	if err := MarkArrivals(ctx, p.s, runs...); err != nil {
		return err
	}
	p.mu.Lock()
	for _, run := range runs {
		delete(p.last, protocol.RunHead(run))
	}
	p.mu.Unlock()
	if p.state == "" {
		return nil
	}
	return changePinned(ctx, p.state, p.s.Dir(), func(w *PinnedHeads) {
		for _, run := range runs {
			w.disown(run)
		}
	})
}
