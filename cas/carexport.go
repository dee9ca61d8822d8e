package cas

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"wf/protocol"
)

// Stats says what an export wrote.
type Stats struct {
	Root   protocol.Link // the head of the run
	Runs   int           // those of sub-workflows included
	Blocks int64
	Bytes  int64 // of the archive
}

// ExportOptions say what an archive holds beside what the runs concluded and what happened.
type ExportOptions struct {
	Files bool // the trees of the workspace that were recorded
}

// exportBuffer is how much is gathered before the store is let go and w is written to.
const exportBuffer = 1 << 20

// Export writes a run as a CARv1 archive that stands alone, with the runs of its sub-workflows,
// children. The first root is the head of the run, then come those of the children, and last a
// protocol.Archive that names them. Every block that a root leads to follows once, depth first, so
// that a reader meets each journal from its newest event on, each before what it names. Definition,
// inputs and source are among them. What o adds comes behind all journals.
//
// The store is not held while w is written to. An unknown run is an error wrapping
// ErrUnknownRun; a missing or damaged block one wrapping ErrCorrupt that names it, and what was
// written until then is no archive of the run.
func Export(ctx context.Context, w io.Writer, from Keeper, o ExportOptions, run protocol.RunID, children ...protocol.RunID) (Stats, error) {
	st := Stats{}
	err := exporting(ctx, from, o, run, children, func(x *export) (err error) {
		st, err = x.write(ctx, w)
		return err
	})
	return st, err
}

// contentsAtOnce is how many blocks Contents names at once.
const contentsAtOnce = 1000

// Contents tells what an archive holds that Export writes: begin is called with the record that is its last root, and then each with all of its other
// blocks in order, some at a time. The store is not held meanwhile.
func Contents(ctx context.Context, from Keeper, o ExportOptions, run protocol.RunID, children []protocol.RunID, begin func(protocol.Archive) error, each func([]protocol.Link) error) error {
	var refused error // by the caller: no fault of the store
	err := exporting(ctx, from, o, run, children, func(x *export) error {
		tell := func(f func() error) error {
			x.pause()
			refused = f()
			return refused
		}
		if err := tell(func() error { return begin(x.record) }); err != nil {
			return err
		}
		var some []protocol.Link
		flush := func() error {
			names := some
			some = nil
			return tell(func() error { return each(names) })
		}
		err := x.walk(ctx, func(n blockName, _ []byte) error {
			if some = append(some, n.link()); len(some) < contentsAtOnce {
				return nil
			}
			return flush()
		})
		if err == nil && len(some) > 0 {
			err = flush()
		}
		return err
	})
	return cmp.Or(refused, err)
}

// exporting opens what is to be exported.
func exporting(ctx context.Context, from Keeper, o ExportOptions, run protocol.RunID, children []protocol.RunID, f func(*export) error) error {
	x := &export{record: protocol.Archive{Kind: protocol.KindArchive, V: protocol.RecordVersion}, at: map[blockName]int{}}
	noted, _ := from.(Evidence)
	for _, id := range append([]protocol.RunID{run}, children...) {
		head, seq, err := from.Tip(ctx, id)
		if err != nil {
			return fmt.Errorf("export run %s: %w", id, err)
		}
		var kept Head
		if o.Files {
			if kept, err = from.Head(ctx, protocol.FilesHead(id)); err != nil {
				return fmt.Errorf("export the files of run %s: %w", id, err)
			}
		}
		x.record.Runs = append(x.record.Runs, protocol.ArchivedRun{Run: id, Head: head, Seq: seq, Files: kept.Link})
		if noted != nil {
			m, err := noted.Moves(ctx, Head{Name: protocol.RunHead(id)})
			if err != nil {
				return fmt.Errorf("export run %s: %w", id, err)
			}
			x.note(m, seq)
		}
	}
	evidence, pause, done, err := bulkReader(ctx, from)
	if err != nil {
		return fmt.Errorf("export run %s: %w", run, err)
	}
	defer done()
	x.from, x.pause = readingAhead(evidence), pause
	if err := f(x); err != nil {
		return fmt.Errorf("export run %s: %w", run, err)
	}
	return nil
}

// bulkReader gives what many blocks of a store are read by. pause lets others have the store until the next block.
func bulkReader(ctx context.Context, from Keeper) (e Evidence, pause, done func(), err error) {
	nothing := func() {}
	switch s := from.(type) {
	case interface {
		evidence(ctx context.Context) (*storeEvidence, error)
	}:
		d, err := s.evidence(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		return d, d.release, d.close, nil
	case Evidence:
		return s, nothing, nothing, nil
	}
	return unnoted{from}, nothing, nothing, nil
}

// unnoted are blocks without a reflog.
type unnoted struct{ protocol.Blocks }

// Moves are none.
func (unnoted) Moves(context.Context, Head) (*Moves, error) { return nil, nil }

// evidence reads the file of the store, which holds it for less than a transaction does.
func (s *Store) evidence(ctx context.Context) (*storeEvidence, error) {
	return openEvidence(ctx, s.Dir(), s.opts)
}

// export is one that is being written.
type export struct {
	record protocol.Archive
	from   *ahead
	pause  func()
	events []blockName       // of all runs, as far as the store has noted them beside the events
	at     map[blockName]int // where they are in events
}

// note takes in what is noted of the events of a journal.
func (x *export) note(m *Moves, head protocol.Seq) {
	for seq := protocol.Seq(1); m != nil && seq <= head; seq++ {
		if n, ok := nameOf(m.Events[seq]); ok {
			x.at[n] = len(x.events)
			x.events = append(x.events, n)
		}
	}
}

// foresee has a block that is due read together with those that come next.
func (x *export) foresee(ctx context.Context, n blockName, todo []blockName, done map[blockName]bool) error {
	if x.from.many == nil || x.from.have[n.link()] != nil {
		return nil
	}
	links := append(make([]protocol.Link, 0, aheadBlocks), n.link())
	for i, ok := x.at[n]; ok && i > 0 && len(links) < aheadBlocks/2; i-- {
		links = append(links, x.events[i-1].link())
	}
	for i := len(todo) - 1; i >= 0 && len(links) < aheadBlocks; i-- {
		if !done[todo[i]] {
			links = append(links, todo[i].link())
		}
	}
	return x.from.want(ctx, links)
}

func (x *export) write(ctx context.Context, w io.Writer) (Stats, error) {
	to := &archiveWriter{w: w, pause: x.pause}
	if err := to.begin(x.record); err != nil {
		return Stats{}, err
	}
	if err := x.walk(ctx, func(n blockName, data []byte) error { return to.add(n.link(), data) }); err != nil {
		return Stats{}, err
	}
	return to.end()
}

// starts are the blocks from which all others are reached: heads first, then what keeps files.
func (x *export) starts() (out []blockName, err error) {
	var links []protocol.Link
	for _, r := range x.record.Runs {
		links = append(links, r.Head)
	}
	for _, r := range x.record.Runs {
		if r.Files.Defined() {
			links = append(links, r.Files)
		}
	}
	for _, l := range links {
		n, ok := nameOf(l)
		if !ok {
			return nil, fmt.Errorf("head %s is no block of this store: %w", l, protocol.ErrCorrupt)
		}
		out = append(out, n)
	}
	return out, nil
}

// walk calls f with each block that the runs lead to, once, depth first.
func (x *export) walk(ctx context.Context, f func(n blockName, data []byte) error) error {
	todo, err := x.starts()
	if err != nil {
		return err
	}
	slices.Reverse(todo)
	for done := map[blockName]bool{}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if done[n] {
			continue
		}
		done[n] = true
		err := x.foresee(ctx, n, todo, done)
		var data []byte
		if err == nil {
			data, err = x.from.Block(ctx, n.link())
		}
		if err != nil {
			return fmt.Errorf("block %s: %w", n, lost(err))
		}
		if err := f(n, data); err != nil {
			return err
		}
		links := examine(n.codec, data).links
		for i := len(links) - 1; i >= 0; i-- {
			todo = append(todo, links[i].to)
		}
	}
	return nil
}
