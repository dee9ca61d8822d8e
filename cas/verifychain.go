package cas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// where words where something is: run/seq/field.
func where(head string, seq protocol.Seq, field string) string {
	head = strings.TrimPrefix(head, "run/")
	if seq > 0 {
		head += "/" + strconv.FormatInt(int64(seq), 10)
	}
	if field != "" {
		head += "/" + field
	}
	return head
}

// chainEvent is one event of a chain.
type chainEvent struct {
	name blockName
	node *node
	seq  protocol.Seq // where it stands
}

// run checks one head: its chain, what the chain reaches, its records, and its moves; nil is that these are not known.
func (v *Verifier) run(ctx context.Context, h Head, moves *Moves) error {
	if n, ok := nameOf(h.Link); ok && h.Seq == 0 { // no journal
		v.settled = v.settled || h.Link == v.o.Head
		return v.visit(ctx, h.Name, 0, n, nil)
	}
	chain, whole, err := v.chain(ctx, h, moves)
	if err != nil {
		return err
	}
	v.report.Checked.Events += int64(len(chain))
	for part := range slices.Chunk(chain, 64) {
		if err := v.foreseeAll(ctx, part); err != nil {
			return err
		}
		for _, c := range part {
			if err := v.reach(ctx, h.Name, c); err != nil {
				return err
			}
		}
	}
	if strings.HasPrefix(h.Name, "run/") {
		if err := v.records(ctx, h, chain, whole); err != nil {
			return err
		}
	}
	at := make(map[blockName]protocol.Seq, len(chain))
	for _, c := range chain {
		at[c.name] = c.seq
	}
	if moves != nil {
		for _, c := range chain {
			if mark, ok := moves.Events[c.seq]; ok && mark != c.name.link() {
				v.find(Finding{Kind: "index", Where: where(h.Name, c.seq, ""), Expected: c.name.String(), Actual: mark.String() + " in " + moves.In, Fix: moves.Fix})
			}
		}
		v.moves(h, chain, at, moves, whole)
		if err := v.bases(ctx, h, chain, moves); err != nil {
			return err
		}
	}
	v.pinned(ctx, h, chain, at, whole)
	return nil
}

// foreseeAll has what events link to read together.
func (v *Verifier) foreseeAll(ctx context.Context, events []chainEvent) error {
	for _, c := range events {
		for _, r := range c.node.links {
			if v.g.nodes[r.to] == nil {
				return v.g.foresee(ctx, r.to, func(yield func(blockName) bool) {
					for _, c := range events {
						for _, r := range c.node.links {
							if !yield(r.to) {
								return
							}
						}
					}
				})
			}
		}
	}
	return nil
}

// earlier has the event seq of a journal read together with those before it, by what is noted of its events; noted is that of
// the journal that has it.
func (v *Verifier) earlier(ctx context.Context, noted *Moves, n blockName, seq protocol.Seq) (*Moves, error) {
	if v.g.from.many == nil || v.g.nodes[n] != nil {
		return noted, nil
	}
	for noted != nil && noted.Base != "" && len(noted.Events) > 0 && !noted.Events[seq].Defined() {
		var err error
		if noted, err = v.evidence.Moves(ctx, Head{Name: noted.Base}); err != nil {
			return nil, err
		}
	}
	if noted == nil {
		return noted, nil
	}
	return noted, v.g.foresee(ctx, n, func(yield func(blockName) bool) {
		for at := seq - 1; at > 0; at-- {
			if before, ok := nameOf(noted.Events[at]); !ok || !yield(before) {
				return
			}
		}
	})
}

// chain gathers the events of a head, oldest first. whole is false when some cannot be
// reached; then it goes on below the hole where the reflog knows an older head.
func (v *Verifier) chain(ctx context.Context, h Head, moves *Moves) (chain []chainEvent, whole bool, err error) {
	whole = true
	noted := cmp.Or(moves, v.hints)
	next, ok := nameOf(h.Link)
	seq := h.Seq
	field := "head"
	if !ok {
		v.find(Finding{Kind: "head_form", Where: where(h.Name, seq, field), Expected: "CIDv1, dag-cbor, sha2-256", Actual: h.Link.String(), Fix: restoreFix})
		return nil, false, nil
	}
	for n := 0; ; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		if noted, err = v.earlier(ctx, noted, next, seq); err != nil {
			return nil, false, err
		}
		nd, err := v.g.get(ctx, next)
		if err != nil && v.ended(ctx) != nil {
			return nil, false, v.ended(ctx)
		}
		if err != nil || nd.fault != nil || nd.event == nil {
			whole = false
			f := Finding{Kind: "not_an_event", Expected: "an event", Fix: restoreFix}
			switch {
			case err != nil:
				f = v.absence(next, err)
			case nd.fault != nil:
				f, field = *nd.fault, "" // the block is there: the fault lies in it
				f.Fix = restoreFix
			default:
				f.Actual = wordKind(nd.kind)
			}
			f.Where = where(h.Name, seq, field)
			v.find(f)
			older, ok := olderHead(moves, seq)
			if !ok {
				if seq > 1 {
					v.doubt("%s: events 1 to %d lie behind the fault at %d and were not checked as a chain", where(h.Name, 0, ""), seq-1, seq)
				}
				break
			}
			if older.Seq < seq-1 {
				v.doubt("%s: events %d to %d lie behind the fault at %d and were not checked as a chain", where(h.Name, 0, ""), older.Seq+1, seq-1, seq)
			}
			next, _ = nameOf(older.New)
			seq, field = older.Seq, "reflog"
			continue
		}
		if nd.event.seq != seq {
			v.find(Finding{Kind: "seq", Where: where(h.Name, seq, "seq"), Expected: strconv.FormatInt(int64(seq), 10),
				Actual: strconv.FormatInt(int64(nd.event.seq), 10), Fix: restoreFix})
			whole = false
			seq = nd.event.seq
		}
		chain = append(chain, chainEvent{next, nd, seq})
		prev := nd.event.prev
		if !prev.defined() {
			if seq != 1 {
				v.find(Finding{Kind: "chain", Where: where(h.Name, seq, "prev"), Expected: fmt.Sprintf("the CID of event %d", seq-1), Actual: "null", Fix: restoreFix})
				whole = false
			}
			break
		}
		if seq <= 1 {
			v.find(Finding{Kind: "chain", Where: where(h.Name, seq, "prev"), Expected: "null in the first event", Actual: prev.to.String(), Fix: restoreFix})
			whole = false
			break
		}
		next, seq, field = prev.to, seq-1, ""
	}
	slices.Reverse(chain)
	return chain, whole, nil
}

func wordKind(kind string) string {
	if kind == "" {
		return "no record"
	}
	return "a " + kind + " record"
}

// absence words what stands where a block should be.
func (v *Verifier) absence(n blockName, err error) Finding {
	f := Finding{Kind: "missing", Expected: n.String(), Actual: "nothing",
		Fix: "wf cas import FILE.car of an export that holds it, or put a copy of the store back"}
	if v.unindexed[n] {
		f.Fix = indexFix
	}
	var m *Mismatch
	switch {
	case errors.As(err, &m):
		f.Kind, f.Actual = "corrupt", m.Actual.String()
	case !errors.Is(err, protocol.ErrNotFound):
		f.Kind, f.Actual = "corrupt", oneLine(err)
	}
	return f
}

// olderHead is the newest move to an event before seq.
func olderHead(moves *Moves, seq protocol.Seq) (ReflogLine, bool) {
	var best ReflogLine
	if moves == nil {
		return best, false
	}
	for _, m := range moves.Lines {
		if _, ok := nameOf(m.New); ok && m.Seq < seq && m.Seq > best.Seq {
			best = m
		}
	}
	return best, best.Seq > 0
}

// hop is one step of the way from an event to a block, for naming it.
type hop struct {
	up *hop
	in blockName
	at int
}

// reach visits everything an event links to, but its predecessor.
func (v *Verifier) reach(ctx context.Context, head string, c chainEvent) error {
	if c.node.reached {
		return nil
	}
	c.node.reached = true
	for _, r := range c.node.links {
		if r.at == c.node.event.prev.at && r.to == c.node.event.prev.to {
			continue
		}
		if err := v.visit(ctx, head, c.seq, r.to, &hop{in: c.name, at: r.at}); err != nil {
			return err
		}
	}
	return nil
}

// visit goes on from a block to everything it leads to. It keeps its own stack: an archive may
// nest deeper than a goroutine can.
func (v *Verifier) visit(ctx context.Context, head string, seq protocol.Seq, first blockName, way *hop) error {
	type stop struct {
		name blockName
		way  *hop
	}
	var trees []stop // outer ones first
	for todo := []stop{{first, way}}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		err := v.g.foresee(ctx, at.name, func(yield func(blockName) bool) {
			for i := len(todo) - 1; i >= 0 && yield(todo[i].name); i-- {
			}
		})
		if err != nil {
			return err
		}
		nd, err := v.g.get(ctx, at.name)
		if err != nil {
			if v.ended(ctx) != nil {
				return v.ended(ctx)
			}
			f := v.absence(at.name, err)
			f.Where = where(head, seq, v.path(ctx, at.way))
			v.find(f)
			continue
		}
		if nd.reached {
			continue
		}
		nd.reached = true
		if nd.kind != "" {
			v.report.Checked.Records++
		}
		if nd.fault != nil {
			f := *nd.fault
			f.Where, f.Fix = where(head, seq, v.path(ctx, at.way)), restoreFix
			v.find(f)
			continue
		}
		switch nd.kind {
		case protocol.KindChunks, protocol.KindFile:
			v.parts(ctx, at.name, nd, func() string { return where(head, seq, v.path(ctx, at.way)) })
		case protocol.KindTree:
			trees = append(trees, at)
		}
		if nd.foreign > 0 {
			v.doubt("%s: %d links to blocks of other systems are not followed", where(head, seq, v.path(ctx, at.way)), nd.foreign)
		}
		for i := len(nd.links) - 1; i >= 0; i-- {
			todo = append(todo, stop{nd.links[i].to, &hop{up: at.way, in: at.name, at: nd.links[i].at}})
		}
	}
	for _, at := range trees {
		if err := v.tree(ctx, at.name, func() string { return where(head, seq, v.path(ctx, at.way)) }); err != nil {
			return err
		}
	}
	return nil
}

// path words a way: data.record.output. Of a long one the ends are given.
func (v *Verifier) path(ctx context.Context, way *hop) string {
	var hops []*hop
	for ; way != nil; way = way.up {
		hops = append(hops, way)
	}
	slices.Reverse(hops)
	var parts []string
	for i, h := range hops {
		if len(hops) > 8 && i >= 4 && i < len(hops)-4 {
			if i == 4 {
				parts = append(parts, "…")
			}
			continue
		}
		field := "?"
		if data, err := v.g.from.Block(ctx, h.in.link()); err == nil {
			field = fieldAt(data, h.at)
		}
		parts = append(parts, field)
	}
	return strings.Join(parts, ".")
}

// records checks that what a run's journal says was concluded belongs to the run.
func (v *Verifier) records(ctx context.Context, h Head, chain []chainEvent, whole bool) error {
	k := known{v: v, at: map[blockName]bool{}}
	ended, cancelled := false, false
	var closing *eventFacts
	for i, c := range chain {
		e := c.node.event
		bad := func(kind, field, want, have string) {
			v.find(Finding{Kind: kind, Where: where(h.Name, c.seq, field), Expected: want, Actual: have, Fix: restoreFix})
		}
		if whole && (i == 0) != (e.typ == protocol.EvRunStarted) {
			bad("chain", "type", map[bool]string{true: "run_started first", false: "run_started only first"}[i == 0], string(e.typ))
		}
		if ended && (e.typ == protocol.EvStepStarted || e.typ == protocol.EvStepCompleted || e.typ == protocol.EvDone) {
			bad("chain", "type", "nothing but a fork after done", string(e.typ))
		}
		switch e.typ {
		case protocol.EvRunStarted, protocol.EvForked:
			ended, cancelled, closing = false, false, nil
			if err := k.begin(ctx, e.start); err != nil {
				return err
			}
		case protocol.EvStepCompleted:
			if !e.record.defined() {
				bad("record", "data.record", "a link to a step record", "null")
				continue
			}
			if err := k.conclude(ctx, e.record.to, protocol.KindStep, whole, func(field, want, have string) { bad("record", "data.record"+field, want, have) }); err != nil {
				return err
			}
			if st := k.facts(ctx, e.record.to); st != nil && e.status != "" && st.status != "" && e.status != st.status {
				bad("record", "data.status", st.status, e.status)
			}
		case protocol.EvCompacted:
			if e.record.defined() {
				if err := k.conclude(ctx, e.record.to, protocol.KindCompaction, whole, func(field, want, have string) { bad("record", "data.record"+field, want, have) }); err != nil {
					return err
				}
			}
		case protocol.EvClosing:
			if closing != nil {
				bad("chain", "type", "a run that closes once", string(e.typ))
			}
			closing = e
		case protocol.EvCancelled:
			if cancelled = true; closing != nil && closing.status != string(protocol.Cancelled) {
				bad("record", "type", "the run ends as "+closing.status+", as it said when it closed", string(e.typ))
			}
		case protocol.EvDone:
			ended = true
			if closing != nil && (closing.status != e.status || closing.result.to != e.result.to) {
				bad("record", "data.result", "what the run said when it closed", e.status)
			}
			if st := k.facts(ctx, e.result.to); e.result.defined() && st != nil {
				if st.status != e.status {
					bad("record", "data.status", st.status, e.status)
				}
				for j, p := range st.parents {
					if whole && !k.at[p.to] {
						bad("record", fmt.Sprintf("data.result.parents[%d]", j), "a record of the run", p.to.String())
					}
				}
			}
		}
	}
	run := protocol.RunOf(h.Name)
	if v.keeps != nil && !v.keeps[protocol.FilesHead(run)] && slices.ContainsFunc(chain, func(c chainEvent) bool { return c.node.event.typ == protocol.EvFilesAt }) {
		v.doubt("%s: the files that it recorded are not kept here", where(h.Name, 0, ""))
	}
	if !ended && !cancelled && len(chain) > 0 {
		v.doubt("%s: it has not ended, so only reflog and last seen heads tell whether events were cut off after %d", where(h.Name, 0, ""), h.Seq)
	}
	return nil
}

// known is what a run has concluded so far.
type known struct {
	v  *Verifier
	at map[blockName]bool // starts, step records, compactions, and what the starts continue
}

func (k *known) facts(ctx context.Context, n blockName) *stepFacts {
	if n.codec != cid.DagCBOR {
		return nil
	}
	nd, err := k.v.g.get(ctx, n)
	if err != nil {
		return nil // reach has reported it
	}
	return nd.step
}

// begin takes a Start in, with everything it continues.
func (k *known) begin(ctx context.Context, start ref) error {
	if !start.defined() {
		return nil
	}
	k.at[start.to] = true
	st := k.facts(ctx, start.to)
	if st == nil {
		return nil
	}
	todo := slices.Clone(st.continues) // the node keeps its own, for other runs with this Start
	for len(todo) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := todo[len(todo)-1].to
		todo = todo[:len(todo)-1]
		if k.at[n] {
			continue
		}
		k.at[n] = true
		if st := k.facts(ctx, n); st != nil {
			todo = append(append(append(todo, st.parents...), st.continues...), st.start)
			if st.resumes.defined() {
				todo = append(todo, st.resumes)
			}
		}
	}
	return nil
}

// conclude takes a record in and holds its links against what came before.
func (k *known) conclude(ctx context.Context, n blockName, kind string, whole bool, bad func(field, want, have string)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	nd, err := k.v.g.get(ctx, n)
	if err != nil || nd.fault != nil {
		k.at[n] = true // reported already; what follows it is not at fault
		return nil
	}
	if nd.kind != kind {
		bad("", "a "+kind+" record", wordKind(nd.kind))
		return nil
	}
	if whole { // else the missing ones may be the very records it links to
		if !k.at[nd.step.start.to] {
			bad(".start", "the start of the run", nd.step.start.to.String())
		}
		for i, p := range nd.step.parents {
			if !k.at[p.to] {
				bad(fmt.Sprintf(".parents[%d]", i), "a record of the run, before it", p.to.String())
			}
		}
		if r := nd.step.resumes; r.defined() && !k.at[r.to] {
			bad(map[string]string{protocol.KindStep: ".resumes", protocol.KindCompaction: ".prior"}[kind], "a record of the run, before it", r.to.String())
		}
	}
	k.at[n] = true
	return nil
}
