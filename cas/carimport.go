package cas

import (
	"context"
	"fmt"
	"io"

	"wf/protocol"
)

// ImportOptions say under which name an archive comes in; the zero value is right.
type ImportOptions struct {
	// Run is the name of the imported run; default is one made from its root. It needs an
	// archive with one root.
	Run protocol.RunID
}

// Imported says what an import brought.
type Imported struct {
	Roots  []protocol.Link
	Blocks int64
	Bytes  int64
	Runs   []protocol.RunID // one for each root that is an event
}

// errForeign is for blocks that only other systems name.
var errForeign = &protocol.Error{Code: protocol.ErrInvalidBlock.Code, Message: "only CIDv1 of dag-cbor or raw with sha2-256 is kept here", Hint: "import an archive that wf export wrote"}

// importBatch is how many bytes of blocks go into one commit.
const importBatch = 1 << 20

// Import reads a CAR archive, version 1 or 2, into a store. Every block must match its CID,
// and be one this store can hold. A root that is an event becomes the head of a run, once
// the whole run has been verified; another run is never overwritten. When an error is
// returned no head was made; blocks that came in before it are garbage for gc.
//
// Damage wraps ErrCorrupt, an incomplete or faulty run ErrVerify, a name that is taken
// ErrHeadMoved, a block of another kind ErrInvalidBlock.
func Import(ctx context.Context, r io.Reader, into *Store, o ImportOptions) (Imported, error) {
	in, err := importFrom(ctx, r, into, o)
	if err != nil {
		return Imported{}, fmt.Errorf("import: %w", err)
	}
	return in, nil
}

func importFrom(ctx context.Context, r io.Reader, into *Store, o ImportOptions) (Imported, error) {
	if o.Run != "" {
		if err := checkRunID(o.Run); err != nil {
			return Imported{}, err
		}
	}
	unlockGC, err := lockGC(into, false)
	if err != nil {
		return Imported{}, err
	}
	defer unlockGC()
	c, err := newCARReader(r)
	if err != nil {
		return Imported{}, err
	}
	v := newVerifier(VerifyOptions{}, stored{into})
	var in Imported
	in.Roots = c.roots
	var batch []Block
	size := 0
	flush := func() error {
		err := into.Commit(ctx, Batch{Blocks: batch})
		batch, size = nil, 0
		return err
	}
	for {
		b, at, err := c.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return Imported{}, err
		}
		n, ok := nameOf(b.Link)
		if !ok {
			return Imported{}, &CARError{at, fmt.Errorf("block %s: %w", b.Link, errForeign)}
		}
		if nd := v.g.add(n, b.Data); nd.fault != nil {
			return Imported{}, &CARError{at, fmt.Errorf("block %s: %s: %w", b.Link, nd.fault.Actual, protocol.ErrInvalidBlock)}
		}
		in.Blocks++
		in.Bytes += int64(len(b.Data))
		batch = append(batch, b)
		if size += len(b.Data); size >= importBatch {
			if err := flush(); err != nil {
				return Imported{}, err
			}
		}
	}
	if err := flush(); err != nil {
		return Imported{}, err
	}
	return in, importHeads(ctx, v, into, &in, o.Run)
}

// importHeads verifies what the roots lead to and makes heads of the events.
func importHeads(ctx context.Context, v *verifier, into *Store, in *Imported, run protocol.RunID) error {
	var moves []Move
	for _, h := range v.rootHeads(in.Roots, run) {
		if h.Seq == 0 {
			continue
		}
		id := protocol.RunID(h.Name[len("run/"):])
		chain, _, err := v.chain(ctx, h, nil)
		if err == nil {
			err = v.run(ctx, h, nil, false)
		}
		if err == nil {
			err = v.report.Err()
		}
		if err != nil {
			return fmt.Errorf("run %s: %w", id, err)
		}
		old, err := into.Head(ctx, h.Name)
		if err != nil {
			return err
		}
		in.Runs = append(in.Runs, id)
		if old.Link == h.Link {
			continue
		}
		if old.Link.Defined() {
			return &protocol.Error{Code: protocol.ErrHeadMoved.Code, Hint: "name the imported run with --run",
				Message: fmt.Sprintf("run %s is there already, with another head (%s)", id, old.Link)}
		}
		m := Move{Name: h.Name, New: h.Link, Note: "import"}
		for _, c := range chain {
			m.Events = append(m.Events, EventRef{c.seq, c.name.link()})
		}
		moves = append(moves, m)
	}
	if len(moves) == 0 {
		return nil
	}
	return into.Commit(ctx, Batch{Moves: moves})
}

// stored is the evidence of a store in use.
type stored struct{ s *Store }

func (e stored) fetch(ctx context.Context, n blockName) ([]byte, error) {
	return e.s.Block(ctx, n.link())
}
