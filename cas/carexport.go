package cas

import (
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
	x := &export{w: w, record: protocol.Archive{Kind: protocol.KindArchive, V: protocol.RecordVersion}, at: map[blockName]int{}}
	noted, _ := from.(Evidence)
	for _, id := range append([]protocol.RunID{run}, children...) {
		head, seq, err := from.Tip(ctx, id)
		if err != nil {
			return Stats{}, fmt.Errorf("export run %s: %w", id, err)
		}
		var kept Head
		if o.Files {
			if kept, err = from.Head(ctx, protocol.FilesHead(id)); err != nil {
				return Stats{}, fmt.Errorf("export the files of run %s: %w", id, err)
			}
		}
		x.record.Runs = append(x.record.Runs, protocol.ArchivedRun{Run: id, Head: head, Seq: seq, Files: kept.Link})
		if noted != nil {
			m, err := noted.Moves(ctx, Head{Name: protocol.RunHead(id)})
			if err != nil {
				return Stats{}, fmt.Errorf("export run %s: %w", id, err)
			}
			x.note(m, seq)
		}
	}
	evidence, pause, done, err := bulkReader(ctx, from)
	if err != nil {
		return Stats{}, fmt.Errorf("export run %s: %w", run, err)
	}
	defer done()
	x.from, x.pause = readingAhead(evidence), pause
	st, err := x.write(ctx)
	if err != nil {
		return Stats{}, fmt.Errorf("export run %s: %w", run, err)
	}
	return st, nil
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
	return openEvidence(ctx, s.Dir(), s.opts.wait())
}

// export is one that is being written.
type export struct {
	w      io.Writer
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

func (x *export) write(ctx context.Context) (Stats, error) {
	names, err := Encode(x.record)
	if err != nil {
		return Stats{}, err
	}
	var roots []protocol.Link
	var todo []blockName
	for _, r := range x.record.Runs {
		n, ok := nameOf(r.Head)
		if !ok {
			return Stats{}, fmt.Errorf("head %s is no block of this store: %w", r.Head, protocol.ErrCorrupt)
		}
		roots, todo = append(roots, r.Head), append(todo, n)
	}
	for _, r := range x.record.Runs {
		if !r.Files.Defined() {
			continue
		}
		n, ok := nameOf(r.Files)
		if !ok {
			return Stats{}, fmt.Errorf("head %s is no block of this store: %w", r.Files, protocol.ErrCorrupt)
		}
		todo = append(todo, n)
	}
	slices.Reverse(todo)
	roots = append(roots, names.Link)
	pending, err := beginCAR(roots)
	if err != nil {
		return Stats{}, err
	}
	st := Stats{Root: roots[0], Runs: len(x.record.Runs), Blocks: 1}
	flush := func() error {
		x.pause() // w may be slow: a terminal, a socket
		st.Bytes += int64(len(pending))
		if _, err := x.w.Write(pending); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
		pending = pending[:0]
		return nil
	}
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
			return Stats{}, fmt.Errorf("block %s: %w", n, lost(err))
		}
		pending = appendSection(pending, n.link().Bytes(), data)
		st.Blocks++
		links := examine(n.codec, data).links
		for i := len(links) - 1; i >= 0; i-- {
			todo = append(todo, links[i].to)
		}
		if len(pending) >= exportBuffer {
			if err := flush(); err != nil {
				return Stats{}, err
			}
		}
	}
	pending = appendSection(pending, names.Link.Bytes(), names.Data)
	err = flush()
	return st, err
}
