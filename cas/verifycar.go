package cas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// archive is the evidence of a CAR file. It keeps the records, which are small, and of the
// payloads what verify keeps of any block.
type archive struct {
	*contents
	records map[blockName][]byte
	bad     map[blockName]error
}

// Moves are none: an archive has no reflog.
func (a *archive) Moves(context.Context, Head) (*Moves, error) { return nil, nil }

func (a *archive) Block(_ context.Context, l protocol.Link) ([]byte, error) {
	n, _ := nameOf(l)
	if data, ok := a.records[n]; ok {
		return data, nil
	}
	if err, ok := a.bad[n]; ok {
		return nil, err
	}
	return nil, fmt.Errorf("block %s is not in the archive: %w", n, protocol.ErrNotFound)
}

// read takes an archive in. Damage goes to v; the error is r's own.
func (a *archive) read(ctx context.Context, r io.Reader, v *Verifier) error {
	a.contents, a.records, a.bad = contentsOf(nil), map[blockName][]byte{}, map[blockName]error{}
	damaged := func(err error) error {
		var c *CARError
		if !errors.As(err, &c) {
			return err
		}
		v.find(Finding{Kind: "archive", Where: fmt.Sprintf("byte %d", c.Offset), Expected: "a CAR section", Actual: c.Err.Error(), Fix: "export the run again"})
		return nil
	}
	c, err := newCARReader(r)
	if err != nil {
		return damaged(err)
	}
	a.contents = contentsOf(c.roots)
	for i := 0; ; i++ {
		if i%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b, at, err := c.next()
		if err == io.EOF {
			return nil
		}
		n, ours := nameOf(b.Link)
		var m *Mismatch
		switch {
		case errors.As(err, &m) && ours:
			a.bad[n] = m
			v.find(Finding{Kind: "corrupt", Where: fmt.Sprintf("byte %d", at), Expected: m.Expected.String(), Actual: m.Actual.String(), Fix: "export the run again"})
		case err != nil:
			return damaged(err)
		case !ours:
			v.g.count.blocks++
			v.g.count.bytes += int64(len(b.Data))
		default:
			nd := v.g.add(n, b.Data)
			if n.codec == cid.DagCBOR {
				a.records[n] = b.Data
			}
			if nd.fault != nil && nd.kind == "" {
				f := *nd.fault
				f.Where, f.Fix = fmt.Sprintf("byte %d", at), "export the run again"
				v.find(f)
			}
		}
		a.add(b.Link, at)
	}
}

// whole finds what the file as a whole lacks, or has too much, where its blocks are sound.
func (a *archive) whole(ctx context.Context, v *Verifier) error {
	odd := func(where, expected, actual string) {
		v.find(Finding{Kind: "archive", Where: where, Expected: expected, Actual: actual, Fix: "export the run again; what another program wrote is read with a tool of the IPLD project"})
	}
	for _, s := range a.sections {
		if err := v.tree(ctx, s.name, func() string { return fmt.Sprintf("byte %d", s.at) }); err != nil {
			return err
		}
	}
	if len(v.report.Findings) > 0 {
		return nil
	}
	if err := a.cut(); err != nil {
		odd("the header", "roots that lead to a run", err.Error())
		return nil
	}
	if journals(v.heads) == 0 {
		odd("the roots", "the newest event of a run", "no root is an event: there is nothing of wf to be proved in it")
		return nil
	}
	at, err := a.misplaced(ctx, v)
	if at != nil {
		odd(fmt.Sprintf("byte %d", at.at), "each block once, before those it links to, in the order of an export", errMisplaced(at).Error())
	}
	return err
}

// rootHeads makes heads of the roots: an event is the newest of a run, anything else a block
// to walk from. The runs have the names that an archive record gives them; where there is none
// they are named after their heads. run is another name for the first one.
func (v *Verifier) rootHeads(roots []protocol.Link, run protocol.RunID) (heads []Head, recorded bool) {
	names, recorded := v.archived(roots)
	for i, l := range roots {
		h := Head{Name: fmt.Sprintf("root %d", i), Link: l}
		n, ok := nameOf(l)
		if !ok {
			v.doubt("root %s is a block of another system and was not followed", l)
			continue
		}
		nd := v.g.nodes[n]
		if nd != nil && nd.archive != nil { // all it leads to is a root too, but what keeps the files
			for j, r := range nd.archive.Runs {
				if id := r.Run; r.Files.Defined() && CheckRunID(id) == nil {
					if j == 0 && run != "" {
						id = run
					}
					heads = append(heads, Head{Name: protocol.FilesHead(id), Link: r.Files})
				}
			}
			continue
		}
		if nd != nil && nd.event != nil {
			h.Seq = nd.event.seq
		}
		if h.Seq > 0 || len(roots) == 1 || names[n] != "" {
			id := names[n]
			if i == 0 && run != "" && (recorded || len(roots) == 1) {
				id = run
			}
			if id == "" {
				id = derivedID(l)
			}
			h.Name = protocol.RunHead(id)
		}
		heads = append(heads, h)
	}
	return heads, recorded
}

// archived are the names of the runs by their heads, where a root is a record of them.
func (v *Verifier) archived(roots []protocol.Link) (names map[blockName]protocol.RunID, recorded bool) {
	names = map[blockName]protocol.RunID{}
	seen := map[protocol.RunID]bool{}
	for i, l := range roots {
		n, _ := nameOf(l)
		nd := v.g.nodes[n]
		if nd == nil || nd.archive == nil {
			continue
		}
		recorded = true
		for j, r := range nd.archive.Runs {
			bad := func(field, want, have string) {
				v.find(Finding{Kind: "archive", Where: fmt.Sprintf("root %d/runs[%d].%s", i, j, field), Expected: want, Actual: have, Fix: "export the run again"})
			}
			head, ok := nameOf(r.Head)
			at := v.g.nodes[head]
			switch err := CheckRunID(r.Run); {
			case err != nil:
				bad("run", "the id of a run", strconv.Quote(string(r.Run)))
			case !ok || !slices.Contains(roots, r.Head):
				bad("head", "a root of the archive", r.Head.String())
			case seen[r.Run] || names[head] != "":
				bad("run", "each run once", string(r.Run))
			case at != nil && at.event != nil && at.event.seq != r.Seq:
				bad("seq", strconv.FormatInt(int64(at.event.seq), 10), strconv.FormatInt(int64(r.Seq), 10))
			default:
				names[head], seen[r.Run] = r.Run, true
			}
		}
	}
	return names, recorded
}

// derivedID names a run that came without a name, after its newest event.
func derivedID(root protocol.Link) protocol.RunID {
	s := root.String()
	return protocol.RunID("car-" + s[len("bafyrei"):len("bafyrei")+12])
}
