package cas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"wf/protocol"
)

// VerifyOptions say what to check; the zero value is every run of the store.
type VerifyOptions struct {
	// Run checks one run alone; "" is all.
	Run protocol.RunID
	// All reads every block of the store, also those that no head reaches. Without Run it is
	// implied.
	All bool
	// Head is a newest event as it was noted elsewhere. Run must still hold it; without Run,
	// one of the runs that are checked.
	Head protocol.Link
	// LastSeen are the heads as they were seen before, kept outside the store. A run that
	// no longer holds its last seen event was rolled back.
	LastSeen PinnedHeads
	// Warn is as in Options, for VerifyDir.
	Warn func(error)
}

// Report is what a verification found.
type Report struct {
	protocol.Report
	Heads []Head `json:"-"` // as they were checked: what PinnedHeads keep
}

// Finding is one fault.
type Finding = protocol.Finding

// findingsMax bounds a report; a store full of damage is not better known by more lines.
const findingsMax = 1000

// Verify reads a store again from its file, without bbolt, and holds everything against its
// hash and its place: bytes, strict form, record profile, links, the chain of each run, its
// records, its head against reflog, last seen heads and a pinned head. Other processes may
// use the store meanwhile. An error means that it could not be read at all; faults are in
// the report.
func Verify(ctx context.Context, s *Store, o VerifyOptions) (Report, error) {
	return verifyDir(ctx, s.Dir(), s.opts, o)
}

// VerifyDir is Verify for a store that may not open any more. It changes nothing.
func VerifyDir(ctx context.Context, dir string, o VerifyOptions) (Report, error) {
	return verifyDir(ctx, dir, Options{Warn: o.Warn}, o)
}

func verifyDir(ctx context.Context, dir string, of Options, o VerifyOptions) (Report, error) {
	there, err := look(dir, func(fs.FileInfo) error { return nil })
	if err == nil && !there {
		err = errNoStore
	}
	if err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", dir, err)
	}
	d, err := openEvidence(ctx, dir, of)
	if err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", dir, err)
	}
	defer d.close()
	v := NewVerifier(o, d)
	d.report = v.find
	if err := d.survey(ctx, v.g, v.All()); err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", dir, err)
	}
	v.unindexed = d.unindexed
	v.heads = d.heads
	for name, lines := range d.reflog {
		if n := len(lines); n > 0 && lines[n-1].New.Defined() {
			v.Lost(name, Seen{Head: lines[n-1].New, Seq: lines[n-1].Seq})
		}
	}
	for _, n := range d.torn {
		v.doubt("meta page %d of %s is not sound (a commit was cut off, or it was changed): a last commit that it alone named cannot be seen", n, fileDB)
	}
	if d.swept {
		v.doubt("the page tree of %s is damaged: blocks and heads were gathered page by page, and newer ones may be lost", fileDB)
	}
	r, err := v.Judge(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", dir, err)
	}
	if !r.OK {
		return r, nil
	}
	d.close()
	err = v.opens(ctx, dir, of, &r)
	return r, err
}

// opens opens a store that is sound by its parts, as every program does that uses it: what that
// refuses is a fault too.
func (v *Verifier) opens(ctx context.Context, dir string, of Options, r *Report) error {
	s, err := Open(ctx, dir, Options{MustExist: true, ReadOnly: true, AnyOwner: true, Wait: of.Wait, Warn: of.Warn})
	if err == nil {
		_, err = s.Heads(ctx, "")
		err = errors.Join(err, s.Close())
	}
	if err != nil && ctx.Err() == nil && (errors.Is(err, protocol.ErrStore) || errors.Is(err, protocol.ErrCorrupt)) {
		r.OK = false
		r.Findings = append(r.Findings, Finding{Kind: "unopenable", Where: fileDB, Expected: "a store that opens", Actual: oneLine(err), Fix: restoreFix})
		return nil
	}
	return err
}

// VerifyCAR verifies an archive alone. Its roots are the heads; o.Run names the only one.
func VerifyCAR(ctx context.Context, r io.Reader, o VerifyOptions) (Report, error) {
	a := &archive{}
	v := NewVerifier(o, a)
	err := a.read(ctx, r, v)
	if err == nil {
		v.heads, _ = v.rootHeads(a.roots, o.Run)
		err = a.whole(ctx, v)
	}
	if err != nil {
		return Report{}, fmt.Errorf("verify archive: %w", err)
	}
	v.doubt("an archive has no reflog: that its head is the newest event of the run is not shown")
	return v.Judge(ctx)
}

// journals counts the heads that name events.
func journals(heads []Head) (n int) {
	for _, h := range heads {
		if h.Seq > 0 {
			n++
		}
	}
	return n
}

// absent finds heads that reflog or last seen heads tell of and that are gone. A run that was deleted is gone
// rightly, where its tombstone names the event that was seen, or a later one.
func (v *Verifier) absent(buried map[protocol.RunID]*protocol.Tombstone) {
	gone, fix := map[string]Seen{}, map[string]string{}
	for name, s := range v.lost {
		gone[name], fix[name] = s, restoreFix
	}
	for name, s := range v.known {
		if _, ok := fix[name]; !ok {
			fix[name] = seenFix
		}
		if s.Seq > gone[name].Seq {
			gone[name] = s
		}
	}
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		if v.keeps[name] || v.o.Run != "" && name != protocol.RunHead(v.o.Run) {
			continue
		}
		seen, actual := gone[name], "no head"
		if t := buried[protocol.RunOf(name)]; t != nil {
			if t.Seq > seen.Seq || t.Seq == seen.Seq && t.Head == seen.Head.String() {
				continue
			}
			actual = fmt.Sprintf("the tombstone of event %d, %s", t.Seq, t.Head)
		}
		v.find(Finding{Kind: "head_missing", Where: where(name, seen.Seq, ""), Expected: seen.Head.String(), Actual: actual, Fix: fix[name]})
	}
}

const (
	restoreFix = "put back a copy of the store that holds it, or wf import an export of the run"
	seenFix    = restoreFix + "; where the store was put back or made anew on purpose, wf verify --forget"
)
