package cas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

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
	return verifyDir(ctx, s.Dir(), s.opts.wait(), o)
}

// VerifyDir is Verify for a store that may not open any more. It changes nothing.
func VerifyDir(ctx context.Context, dir string, o VerifyOptions) (Report, error) {
	return verifyDir(ctx, dir, defaultWait, o)
}

func verifyDir(ctx context.Context, dir string, patience time.Duration, o VerifyOptions) (Report, error) {
	there, err := look(dir, func(fs.FileInfo) error { return nil })
	if err == nil && !there {
		err = errNoStore
	}
	if err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", dir, err)
	}
	d, err := openEvidence(ctx, dir, patience)
	if err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", dir, err)
	}
	defer d.close()
	v := newVerifier(o, d)
	d.report = v.find
	if err := d.survey(ctx, v.g, o.Run == "" || o.All); err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", dir, err)
	}
	v.marks, v.unindexed = d.marks, d.unindexed
	for _, n := range d.torn {
		v.doubt("meta page %d of %s is not sound (a commit was cut off, or it was changed): a last commit that it alone named cannot be seen", n, fileDB)
	}
	if d.swept {
		v.doubt("the page tree of %s is damaged: blocks and heads were gathered page by page, and newer ones may be lost", fileDB)
	}
	r, err := v.judge(ctx, d.heads, d.reflog)
	if err != nil || !r.OK {
		return r, err
	}
	d.close()
	err = v.opens(ctx, dir, patience, &r)
	return r, err
}

// opens opens a store that is sound by its parts, as every program does that uses it: what that
// refuses is a fault too.
func (v *verifier) opens(ctx context.Context, dir string, patience time.Duration, r *Report) error {
	s, err := Open(ctx, dir, Options{MustExist: true, ReadOnly: true, AnyOwner: true, Wait: patience})
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
	v := newVerifier(o, a)
	roots, err := a.read(ctx, r, v)
	if err != nil {
		return Report{}, fmt.Errorf("verify archive: %w", err)
	}
	heads, _ := v.rootHeads(roots, o.Run)
	v.doubt("an archive has no reflog: that its head is the newest event of the run is not shown")
	return v.judge(ctx, heads, nil)
}

// verifier gathers findings.
type verifier struct {
	o      VerifyOptions
	g      *graph
	report Report
	more   int
	seen   map[Finding]bool
	doubts map[string]bool
	known  map[string]Seen                      // o.LastSeen, of both kinds
	marks  map[string]map[protocol.Seq][32]byte // what index/events says

	unindexed map[blockName]bool

	alone   bool            // one journal is checked, and no other
	keeps   map[string]bool // the heads that there are
	settled bool            // o.Head was found, or its absence reported
}

func newVerifier(o VerifyOptions, from evidence) *verifier {
	return &verifier{
		o: o, g: &graph{nodes: map[blockName]*node{}, from: from},
		report: Report{Report: protocol.Report{Schema: "wf.verify/v1", Findings: []Finding{}, NotProven: []string{}}},
		seen:   map[Finding]bool{}, doubts: map[string]bool{}, known: o.LastSeen.All(),
	}
}

func (v *verifier) find(f Finding) {
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

func (v *verifier) doubt(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !v.doubts[s] {
		v.doubts[s] = true
		v.report.NotProven = append(v.report.NotProven, s)
	}
}

// judge checks the heads and concludes.
func (v *verifier) judge(ctx context.Context, heads []Head, moves map[string][]reflogLine) (Report, error) {
	slices.SortFunc(heads, func(a, b Head) int { return strings.Compare(a.Name, b.Name) })
	only := []string{protocol.RunHead(v.o.Run), protocol.FilesHead(v.o.Run)}
	chosen := slices.DeleteFunc(slices.Clone(heads), func(h Head) bool { return v.o.Run != "" && !slices.Contains(only, h.Name) })
	v.alone = journals(chosen) == 1
	buried, err := v.tombstones(ctx, heads)
	if err != nil {
		return Report{}, err
	}
	v.keeps = map[string]bool{}
	for _, h := range heads {
		v.keeps[h.Name] = true
	}
	for _, h := range chosen {
		if err := v.run(ctx, h, moves[h.Name], moves != nil); err != nil {
			return Report{}, err
		}
	}
	v.report.Heads = chosen
	v.absent(heads, moves, buried)
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
	if moves != nil && v.o.LastSeen.Empty() {
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
func (v *verifier) absent(heads []Head, moves map[string][]reflogLine, buried map[protocol.RunID]*protocol.Tombstone) {
	have := map[string]bool{}
	for _, h := range heads {
		have[h.Name] = true
	}
	gone, fix := map[string]Seen{}, map[string]string{}
	for name, lines := range moves {
		if n := len(lines); n > 0 && lines[n-1].New.Defined() {
			gone[name], fix[name] = Seen{Head: lines[n-1].New, Seq: lines[n-1].Seq}, restoreFix
		}
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
		if have[name] || v.o.Run != "" && name != protocol.RunHead(v.o.Run) {
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
