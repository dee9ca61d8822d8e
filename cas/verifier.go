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

// Evidence is what a Verifier reads: a store, what is left of one, or an archive. One that also is a Together is read in large
// parts. One that has the method Head of Backing is asked again for a head with a fault: it may have been deleted meanwhile.
type Evidence interface {
	// Block gives the bytes of a block, with their hash checked. An error wraps protocol.ErrNotFound, or protocol.ErrCorrupt
	// with what was found instead; any other one ends the verification.
	protocol.Blocks
	// Moves are the moves of a head that the Verifier was told of, up to where it was told to be. nil is that there is no
	// reflog.
	Moves(ctx context.Context, h Head) (*Moves, error)
}

// Moves is what is noted of a head beside its events.
type Moves struct {
	Lines []ReflogLine // oldest first
	// Events are events by their seq: readers of the journal go by them. They may be some alone.
	Events map[protocol.Seq]protocol.Link
	// In is where Events are, for people, and Fix what mends them.
	In, Fix string
	// Base is the head that has the events up to Shared; "" for none.
	Base   string
	Shared protocol.Seq
	// Whole is that Lines and Events are all that there were, so that one which is missing is a fault.
	Whole bool
}

// Verifier holds a store against its hashes. What gathers the evidence tells it what there is, and then asks for the judgement:
//
//	v := NewVerifier(o, e)      Head, Lost, Block (with All every block of the store), Fault
//	report, err := v.Judge(ctx)
//
// It keeps some bytes of each block that it has met (not the block), but where it was told of blocks with Block no more of
// them than nodesKept and those of the longest run.
type Verifier struct {
	o        VerifyOptions
	g        *graph
	evidence Evidence
	report   Report
	more     int
	seen     map[Finding]bool
	doubts   map[string]bool
	known    map[string]Seen // o.LastSeen, of both kinds
	hints    *Moves          // what is noted of a journal whose moves are not checked
	heads    []Head
	lost     map[string]Seen

	unindexed map[blockName]bool

	alone   bool            // one journal is checked, and no other
	keeps   map[string]bool // the heads that there are
	settled bool            // o.Head was found, or its absence reported
}

// nodesKept is how many blocks of a store that is read in parts are kept in mind, some 500 bytes each.
const nodesKept = 1 << 17

// NewVerifier begins a verification.
func NewVerifier(o VerifyOptions, e Evidence) *Verifier {
	return &Verifier{
		o: o, g: &graph{nodes: map[blockName]*node{}, from: readingAhead(e)}, evidence: e,
		report: Report{Report: protocol.Report{Schema: "wf.verify/v1", Findings: []Finding{}, NotProven: []string{}}},
		seen:   map[Finding]bool{}, doubts: map[string]bool{}, known: o.LastSeen.All(), lost: map[string]Seen{},
	}
}

// All reports whether every block of the store is to be read, also those that no head reaches.
func (v *Verifier) All() bool { return v.o.Run == "" || v.o.All }

// Head tells of a head.
func (v *Verifier) Head(h Head) { v.heads = append(v.heads, h) }

// Lost tells of a head that the reflog knows, with the last place that it had. It is a fault where the Verifier is told of no
// such head, and it is not that of a run that was deleted.
func (v *Verifier) Lost(name string, last Seen) { v.lost[name] = last }

// Block tells of a block of the store; its hash has been checked.
func (v *Verifier) Block(l protocol.Link, data []byte) {
	v.g.counted = true
	v.g.count.blocks++
	v.g.count.bytes += int64(len(data))
	if n, ok := nameOf(l); ok && len(v.g.nodes) < nodesKept {
		v.g.add(n, data)
	}
}

// Fault tells of a fault that is mended by another copy of the store: where it is, as head/seq/field, 0 and "" for none.
func (v *Verifier) Fault(kind, head string, seq protocol.Seq, field, expected, actual string) {
	v.find(Finding{Kind: kind, Where: where(head, seq, field), Expected: expected, Actual: actual, Fix: restoreFix})
}

func (v *Verifier) find(f Finding) {
	if v.seen[f] {
		return
	}
	if len(v.report.Findings) >= findingsMax {
		v.more++
		return
	}
	v.seen[f] = true
	v.report.Findings = append(v.report.Findings, f)
}

func (v *Verifier) doubt(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !v.doubts[s] {
		v.doubts[s] = true
		v.report.NotProven = append(v.report.NotProven, s)
	}
}

// ended is why a verification cannot go on; nil where it can.
func (v *Verifier) ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return v.g.failed
}

// Judge checks the heads and concludes. An error means that the evidence could not be read; faults are in the report.
func (v *Verifier) Judge(ctx context.Context) (Report, error) {
	slices.SortFunc(v.heads, func(a, b Head) int { return strings.Compare(a.Name, b.Name) })
	only := []string{protocol.RunHead(v.o.Run), protocol.FilesHead(v.o.Run)}
	chosen := slices.DeleteFunc(slices.Clone(v.heads), func(h Head) bool { return v.o.Run != "" && !slices.Contains(only, h.Name) })
	v.alone = journals(chosen) == 1
	buried, err := v.tombstones(ctx, v.heads)
	if err != nil {
		return Report{}, err
	}
	v.keeps = map[string]bool{}
	for _, h := range v.heads {
		v.keeps[h.Name] = true
	}
	reflog := true
	for _, h := range chosen {
		faults := len(v.report.Findings)
		moves, err := v.evidence.Moves(ctx, h)
		if errors.Is(err, protocol.ErrCorrupt) {
			v.Fault("reflog_form", h.Name, 0, "reflog", "moves that can be read", oneLine(err))
			moves, err = &Moves{}, nil
		}
		if err == nil {
			reflog = moves != nil
			err = v.run(ctx, h, moves)
		}
		if err = cmp.Or(err, v.ended(ctx)); err != nil {
			return Report{}, err
		}
		if len(v.report.Findings) > faults {
			if err := v.again(ctx, h, faults); err != nil {
				return Report{}, err
			}
		}
		if v.g.counted && len(v.g.nodes) > nodesKept {
			clear(v.g.nodes)
		}
	}
	v.report.Heads = chosen
	v.absent(buried)
	if v.o.Run != "" && len(chosen) == 0 && len(v.report.Findings) == 0 {
		if t := buried[v.o.Run]; t != nil {
			return Report{}, t.Error()
		}
		return Report{}, fmt.Errorf("run %s: %w", v.o.Run, protocol.ErrUnknownRun)
	}
	if v.o.Head.Defined() && !v.settled {
		v.find(Finding{Kind: "head_missing", Where: "the given head", Expected: v.o.Head.String(),
			Actual: fmt.Sprintf("not in the chain of any of %d heads", len(chosen)), Fix: restoreFix})
	}
	if reflog && v.o.LastSeen.Empty() {
		v.doubt("no last seen heads: a store put back to an older copy of itself looks the same")
	}
	if v.more > 0 {
		v.doubt("%d further findings are left out", v.more)
	}
	r := v.report
	r.Checked.Heads, r.Checked.Blocks, r.Checked.Bytes = len(chosen), v.g.count.blocks, v.g.count.bytes
	r.OK = len(r.Findings) == 0
	return r, nil
}

// again drops the faults of a head that is gone rightly since it was told of: a run that was deleted, or files that were
// dropped. A collection may have removed what it led to.
func (v *Verifier) again(ctx context.Context, h Head, faults int) error {
	now, ok := v.evidence.(interface {
		Head(ctx context.Context, name string) (Head, error)
	})
	if !ok {
		return nil
	}
	have, err := now.Head(ctx, h.Name)
	if err != nil || have.Link.Defined() {
		return ignoreDamage(err)
	}
	if !strings.HasPrefix(h.Name, protocol.FilesHead("")) {
		stone, err := now.Head(ctx, protocol.DeletedHead(protocol.RunOf(h.Name)))
		if err != nil || !stone.Link.Defined() {
			return ignoreDamage(err)
		}
	}
	for _, f := range v.report.Findings[faults:] {
		delete(v.seen, f)
	}
	v.report.Findings = v.report.Findings[:faults]
	return nil
}

// ignoreDamage is an error of reading, unless it tells of damage: that is reported elsewhere.
func ignoreDamage(err error) error {
	if errors.Is(err, protocol.ErrCorrupt) {
		return nil
	}
	return err
}
