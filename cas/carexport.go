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
func Export(ctx context.Context, w io.Writer, from *Store, o ExportOptions, run protocol.RunID, children ...protocol.RunID) (Stats, error) {
	record := protocol.Archive{Kind: protocol.KindArchive, V: protocol.RecordVersion}
	for _, id := range append([]protocol.RunID{run}, children...) {
		head, err := from.runHead(ctx, id)
		if err != nil {
			return Stats{}, fmt.Errorf("export run %s: %w", id, err)
		}
		var kept Head
		if o.Files {
			if kept, err = from.Head(ctx, protocol.FilesHead(id)); err != nil {
				return Stats{}, fmt.Errorf("export the files of run %s: %w", id, err)
			}
		}
		record.Runs = append(record.Runs, protocol.ArchivedRun{Run: id, Head: head.Link, Seq: head.Seq, Files: kept.Link})
	}
	d, err := openEvidence(ctx, from.Dir(), from.opts.wait())
	if err != nil {
		return Stats{}, fmt.Errorf("export run %s: %w", run, err)
	}
	defer d.close()
	st, err := export(ctx, w, d, record)
	if err != nil {
		return Stats{}, fmt.Errorf("export run %s: %w", run, err)
	}
	return st, nil
}

func export(ctx context.Context, w io.Writer, d *storeEvidence, record protocol.Archive) (Stats, error) {
	d.g = &graph{nodes: map[blockName]*node{}, from: d}
	names, err := Encode(record)
	if err != nil {
		return Stats{}, err
	}
	var roots []protocol.Link
	var todo []blockName
	for _, r := range record.Runs {
		n, ok := nameOf(r.Head)
		if !ok {
			return Stats{}, fmt.Errorf("head %s is no block of this store: %w", r.Head, protocol.ErrCorrupt)
		}
		roots, todo = append(roots, r.Head), append(todo, n)
	}
	for _, r := range record.Runs {
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
	st := Stats{Root: roots[0], Runs: len(record.Runs), Blocks: 1}
	flush := func() error {
		d.release() // w may be slow: a terminal, a socket
		st.Bytes += int64(len(pending))
		if _, err := w.Write(pending); err != nil {
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
		data, err := d.fetch(ctx, n)
		if err != nil {
			return Stats{}, fmt.Errorf("block %s: %w", n, lost(err))
		}
		pending = appendSection(pending, n.link().Bytes(), data)
		st.Blocks++
		links := d.g.add(n, data).links
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
