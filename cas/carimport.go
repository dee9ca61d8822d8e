package cas

import (
	"context"
	"fmt"
	"io"
	"strings"

	"wf/protocol"
)

// ImportOptions say under which name an archive comes in; the zero value is right.
type ImportOptions struct {
	// Run is another name for the imported run; default is its own, or, where the archive has no
	// record of names, one made from its head. It needs such a record, or an archive with one
	// root.
	Run protocol.RunID
	// Before is called before heads are made and moved, with the runs that are there and go on to
	// a new head; its error ends the import. nil is none.
	Before func(forwarded []protocol.RunID) error
}

// Imported says what an import brought.
type Imported struct {
	Roots  []protocol.Link
	Blocks int64
	Bytes  int64
	Runs   []protocol.RunID // that were exported: one, or, in an archive without names, one for each root that is an event
	// Children are the runs of sub-workflows that came with it.
	Children []protocol.RunID
	// Forwarded are those that were there and went on to their new head, Held those that were
	// there already with all that came in.
	Forwarded, Held []protocol.RunID
}

// errForeign is for blocks that only other systems name. The archive may be sound.
var errForeign = &protocol.Error{Code: protocol.ErrInvalidBlock.Code, Message: "a store keeps CIDv1 of dag-cbor or raw with sha2-256 alone",
	Hint: "the archive may be sound, but it is not one of wf: read it with a tool of the IPLD project"}

// errNoRun is for an archive that may be sound.
var errNoRun = &protocol.Error{Code: protocol.ErrInvalidBlock.Code, Message: "it holds no run: no root is the newest event of one",
	Hint: "wf export RUN -o FILE.car writes an archive of a run; what another program wrote is read with a tool of the IPLD project"}

// Import reads a CAR archive, version 1 or 2, into a store. Every block must match its CID,
// and be one this store can hold. A root that is an event becomes the head of a run, once
// the whole run has been verified. A run that is there already goes on where the archive holds its
// further history, and stays where it is the further one itself; a run of another history is never
// overwritten.
//
// Nothing is written before the archive was read to its end and all of it was found sound: what is
// damaged or cut off leaves nothing behind. An error after that (a full disk, one of o.Before) leaves
// blocks that nothing reaches, as a process that is killed does: garbage for gc. An r that cannot
// be read twice, such as a pipe, is kept meanwhile in a file without a name, in the directory of the store or else in that for
// temporary files.
//
// Damage wraps ErrCorrupt, an incomplete or faulty run ErrVerify, a name that is taken
// ErrHeadMoved, a block of another kind ErrInvalidBlock.
func Import(ctx context.Context, r io.Reader, into Keeper, o ImportOptions) (in Imported, err error) {
	defer func() {
		if err != nil {
			in, err = Imported{}, fmt.Errorf("import: %w", err)
		}
	}()
	if o.Run != "" {
		if err := CheckRunID(o.Run); err != nil {
			return in, err
		}
	}
	spool := "" // the directory for temporary files
	if s, ok := into.(interface{ spool() string }); ok {
		spool = s.spool()
	}
	archive, base, done, err := rereadable(r, spool)
	if err != nil {
		return in, err
	}
	defer done()
	release, err := hold(ctx, into)
	if err != nil {
		return in, err
	}
	defer release()
	x := &incoming{archive: archive, base: base, into: into}
	v := NewVerifier(VerifyOptions{}, x)
	in, err = x.survey(ctx, v)
	if err != nil {
		return in, err
	}
	batch, came, err := importHeads(ctx, v, into, &in, o)
	if err == nil {
		err = x.whole(ctx, v)
	}
	if err != nil {
		return in, err
	}
	// What is sound is kept as a whole: who asked for it may go away meanwhile.
	ctx = context.WithoutCancel(ctx)
	if err := x.commit(ctx); err != nil {
		return in, err
	}
	if len(batch.Moves) > 0 && o.Before != nil {
		if err := o.Before(in.Forwarded); err != nil {
			return in, err
		}
	}
	var moved []protocol.RunID
	for _, m := range batch.Moves {
		if strings.HasPrefix(m.Name, protocol.RunHead("")) {
			moved = append(moved, protocol.RunOf(m.Name))
		}
	}
	if err := MarkArrivals(ctx, into, moved...); err != nil {
		return in, err
	}
	if len(batch.Moves) > 0 {
		if err := into.Commit(ctx, batch); err != nil {
			return in, err
		}
	}
	return in, relate(ctx, into, came)
}

// importHeads verifies what the roots lead to, and returns the batch that makes heads of the events, with the runs that are there behind it.
func importHeads(ctx context.Context, v *Verifier, into Keeper, in *Imported, o ImportOptions) (batch Batch, came []arrival, err error) {
	for _, l := range in.Roots { // an archive may leave out what the store has, and so a head as well
		n, ok := nameOf(l)
		if !ok {
			continue
		}
		if _, err := v.g.get(ctx, n); err != nil {
			if v.ended(ctx) != nil {
				return batch, nil, v.ended(ctx)
			}
			return batch, nil, fmt.Errorf("root %s is not in the archive, and not in the store: %w", l, lost(err))
		}
	}
	heads, recorded := v.rootHeads(in.Roots, o.Run)
	if journals(heads) == 0 {
		return batch, nil, errNoRun
	}
	for _, h := range heads {
		if run, ok := strings.CutPrefix(h.Name, protocol.FilesHead("")); ok && h.Seq == 0 {
			if err := importFiles(ctx, v, into, h, &batch); err != nil {
				return batch, nil, fmt.Errorf("the files of run %s: %w", run, err)
			}
			continue
		}
		if h.Seq == 0 && recorded && strings.HasPrefix(h.Name, protocol.RunHead("")) {
			return batch, nil, protocol.ErrVerify.With("export the run again", "run %s: its head %s is no event of the archive, and none of the store", protocol.RunOf(h.Name), h.Link)
		}
		if h.Seq == 0 {
			continue
		}
		id := protocol.RunID(h.Name[len("run/"):])
		chain, _, err := v.chain(ctx, h, nil)
		if err == nil {
			err = v.run(ctx, h, nil)
		}
		if err == nil {
			err = v.report.Err()
		}
		if err != nil {
			return batch, nil, fmt.Errorf("run %s: %w", id, err)
		}
		old, err := into.Head(ctx, h.Name)
		if err != nil {
			return batch, nil, err
		}
		child := recorded && h.Link != in.Roots[0]
		if child {
			in.Children = append(in.Children, id)
		} else {
			in.Runs = append(in.Runs, id)
		}
		k := kinOf(chain)
		came = append(came, arrived(id, chain, k))
		held, err := holds(ctx, into, old, h)
		if err != nil {
			return batch, nil, err
		}
		if held {
			in.Held = append(in.Held, id)
			continue
		}
		m := Move{Name: h.Name, Old: old.Link, New: h.Link, Note: "import"}
		if child {
			m.Root = protocol.RunOf(heads[0].Name)
		}
		forward := !old.Link.Defined()
		for _, c := range chain {
			forward = forward || c.seq == old.Seq && c.name.link() == old.Link
			if c.seq > old.Seq {
				m.Events = append(m.Events, EventRef{c.seq, c.name.link()})
			}
		}
		if !forward {
			return batch, nil, &protocol.Error{Code: protocol.ErrHeadMoved.Code, Hint: "--run NAME imports it beside that one, under another name",
				Message: fmt.Sprintf("there is another run %s already, with the head %s", id, old.Link)}
		}
		if old.Link.Defined() {
			in.Forwarded = append(in.Forwarded, id)
		} else {
			derived, err := k.begins(ctx, into, &m, chain)
			if err != nil {
				return batch, nil, err
			}
			batch.Derived = append(batch.Derived, derived...)
		}
		batch.Moves = append(batch.Moves, m)
	}
	return batch, came, nil
}

// holds reports whether the journal under a head of a store holds an event in its history.
func holds(ctx context.Context, s Keeper, have, want Head) (bool, error) {
	if !have.Link.Defined() || have.Seq < want.Seq {
		return false, nil
	}
	for x, err := range s.Events(ctx, have.Name, have.Name, want.Seq-1) {
		return err == nil && x.CID == want.Link, err
	}
	return false, nil
}

// spool is where an archive is kept until it has come to its end: what fills it up is the disk of the store.
func (s *Store) spool() string { return s.gate.dir }
