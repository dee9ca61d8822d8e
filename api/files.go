package api

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
	"wf/protocol/tree"
)

// Looks are what a run recorded of the files of its workspace: wf.looks/v1.
type Looks struct {
	Schema    string         `json:"schema"`
	Run       protocol.RunID `json:"run"`
	Workspace string         `json:"workspace"`
	Recorded  bool           `json:"recorded"`
	Why       string         `json:"why,omitempty"`  // they are not
	Looks     []Look         `json:"looks"`          // in order
	Own       []OwnVisit     `json:"own,omitempty"`  // the visits with copies of the workspace for themselves, and the merges of those; in the order in which they began
	Next      string         `json:"next,omitempty"` // give it as after to read on; left out at the end
}

// Look is what the workspace held once.
type Look struct {
	Seq     protocol.Seq `json:"seq"` // of its event
	Time    Time         `json:"time"`
	Step    string       `json:"step"`             // "" at the start of the run
	Attempt int          `json:"attempt"`          // from 1; 0 at the start of the run
	Phase   string       `json:"phase"`            // start, before, call or after
	Call    string       `json:"call,omitempty"`   // the tool call that had ended
	Tool    string       `json:"tool,omitempty"`   // of the call
	Tree    string       `json:"tree,omitempty"`   // its CID
	Failed  string       `json:"failed,omitempty"` // why there is none
	By      []string     `json:"by"`               // which visits, and "outside", may have changed what differs from the look before; "N others" beyond 100 of them
}

// OwnVisit are the files of a visit that had a copy of the workspace for itself, or of a merge of such visits. They are no looks at the
// workspace.
type OwnVisit struct {
	Step   string       `json:"step"`
	Seq    protocol.Seq `json:"seq"`              // of its newest event of these: own_copy, step_completed
	Time   Time         `json:"time"`             // of that
	Base   string       `json:"base"`             // the tree at the fan-out
	Found  string       `json:"found,omitempty"`  // the tree that it began with, where that is what From left
	From   string       `json:"from,omitempty"`   // the visit from whose copy it went on
	Tree   string       `json:"tree,omitempty"`   // as it was left, or merged; left out where the visit did not end well, or has not ended
	Merged []string     `json:"merged,omitempty"` // of a merge: the visits whose changes it took over, in that order
}

// Phases of a Look, beside those of protocol.FilesAt; and what a visit is not.
const (
	LookStart = "start"
	Outside   = "outside"
)

// StepFiles are the files that a step left, or found: wf.files/v1.
type StepFiles struct {
	Schema string         `json:"schema"`
	Run    protocol.RunID `json:"run"`
	Step   string         `json:"step"`  // "" for the whole run
	Phase  string         `json:"phase"` // of the look that has them: start, before, call or after
	Tree   CID            `json:"tree"`
	Files  []StepFile     `json:"files"`
	Next   string         `json:"next,omitempty"` // give it as after to read on; left out at the end
}

// StepFile is a file of a tree, or one that was removed.
type StepFile struct {
	Path   string   `json:"path"`
	Mode   string   `json:"mode"`             // file, exec, link or omitted
	Size   int64    `json:"size"`             // bytes
	CID    string   `json:"cid,omitempty"`    // of its content
	Why    string   `json:"why,omitempty"`    // it was omitted: name, special, size, secret, unstable or denied
	Change string   `json:"change,omitempty"` // added, changed or removed
	By     []string `json:"by,omitempty"`     // which visits did that, in order: coder#1, outside, or one of several
}

// A Shot is a look that has a tree.
type Shot struct {
	Look
	Root protocol.Link
}

// LayOut is the command that writes the files of a look of a run below another directory.
func (l *Look) LayOut(run protocol.RunID) string {
	if l.Phase == protocol.FilesBefore && l.Attempt <= 1 {
		return "wf restore " + protocol.ShellWord(string(run)+":"+l.Step) + " --before --to DIR"
	}
	return "wf restore " + string(run) + " --tree " + l.Tree + " --to DIR"
}

// Shots are the looks that have a tree. What may have happened before looks without one is told with the next.
func (l *Looks) Shots() (out []Shot, err error) {
	var carry []string
	failed := false
	for _, x := range l.Looks {
		x.By = union(carry, x.By)
		if x.Tree == "" {
			carry, failed = x.By, true
			continue
		}
		if failed { // it may have been an earlier call
			x.Call, x.Tool = "", ""
		}
		carry, failed = nil, false
		root, err := protocol.ParseLink(x.Tree)
		if err != nil {
			return nil, fmt.Errorf("run %s, event %d: %w", l.Run, x.Seq, err)
		}
		out = append(out, Shot{x, root})
	}
	return out, nil
}

// union is a sorted list of what is in either.
func union(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// A Span is a part of what a run recorded: from the look at what a step found to that at what it left.
type Span struct {
	Prior *Shot  // the one before the first; nil for none
	Shots []Shot // the first one is what the step found, the last one what it left
	Ended bool   // the last one was taken when the attempt had ended
}

// Found is what there was before, Left what there was after.
func (s *Span) Found() *Shot { return &s.Shots[0] }
func (s *Span) Left() *Shot  { return &s.Shots[len(s.Shots)-1] }

// Of finds what a step found and left; with "" the run. One of which nothing was recorded is an error wrapping
// protocol.ErrNotFound.
func (l *Looks) Of(step string) (*Span, error) {
	shots, err := l.Shots()
	if err != nil {
		return nil, err
	}
	if own := l.OwnOf(step); own != nil && !slices.ContainsFunc(shots, func(s Shot) bool { return s.Step == step }) {
		return own.span(l.Run)
	}
	if len(shots) == 0 && len(l.Own) > 0 && step == "" {
		return nil, protocol.ErrNotFound.With("wf files "+protocol.ShellWord(string(l.Run)+":"+l.Own[0].Step)+" lists those of a visit with an own copy; workspace: {track: true} in the workflow has later runs record all", "run %s recorded no files of its workspace, but those of visits with own copies of it", l.Run)
	}
	if len(shots) == 0 {
		why := "its workflow has no role that may write, or says workspace.track: false"
		if l.Why != "" {
			why = l.Why
		}
		return nil, protocol.ErrNotFound.With("workspace: {track: true} in the workflow has later runs record them", "run %s recorded no files: %s", l.Run, why)
	}
	if step == "" {
		return &Span{Shots: shots, Ended: true}, nil
	}
	first := slices.IndexFunc(shots, func(s Shot) bool { return s.Step == step && s.Phase == protocol.FilesBefore })
	if first < 0 {
		return nil, protocol.ErrNotFound.With("only steps that may write record files; wf files "+string(l.Run)+" shows those of the run", "%s of run %s recorded no files", step, l.Run)
	}
	last := first
	ended := false
	for i := first + 1; i < len(shots); i++ {
		if s := &shots[i]; s.Step == step && s.Phase != protocol.FilesBefore {
			last, ended = i, s.Phase == protocol.FilesAfter
		}
	}
	out := &Span{Shots: shots[first : last+1], Ended: ended}
	if first > 0 {
		out.Prior = &shots[first-1]
	}
	return out, nil
}

// Before is the look that has the files as a fork at a step finds them. It shares the events up to at. Without after that is
// what the first attempt of the step found, else, and with after, the last look until at. Where there is none it is an error
// wrapping protocol.ErrNotFound.
func (l *Looks) Before(step string, after bool, at protocol.Seq) (*Shot, error) {
	whole, err := l.Of("")
	if err != nil {
		return nil, err
	}
	var last *Shot
	for i := range whole.Shots {
		x := &whole.Shots[i]
		switch {
		case !after && x.Step == step && x.Phase == protocol.FilesBefore && x.Attempt <= 1:
			return x, nil
		case x.Seq <= at:
			last = x
		}
	}
	if last == nil {
		return nil, protocol.ErrNotFound.With("wf files "+string(l.Run)+" shows what the run recorded", "run %s recorded no files before event %d", l.Run, at+1)
	}
	return last, nil
}

// OwnOf is a visit with an own copy, or a merge, by its name; nil where it is none.
func (l *Looks) OwnOf(step string) *OwnVisit {
	i := slices.IndexFunc(l.Own, func(v OwnVisit) bool { return v.Step == step })
	if i < 0 {
		return nil
	}
	return &l.Own[i]
}

// Lineage are the visits that led to what one left in its own copy: those from whose copies it went on, then itself.
func (l *Looks) Lineage(step string) (out []OwnVisit) {
	for v := l.OwnOf(step); v != nil && v.Tree != "" && len(out) <= len(l.Own); v = l.OwnOf(v.From) {
		out = append(out, *v)
	}
	slices.Reverse(out)
	return out
}

// span is what the visit found, and left.
func (v *OwnVisit) span(run protocol.RunID) (*Span, error) {
	if v.Tree == "" {
		return nil, protocol.ErrNotFound.With("wf show "+string(run)+" tells how it ended", "%s of run %s works in a copy of the workspace: what it left there is recorded where it ends well", v.Step, run)
	}
	out := &Span{Ended: true}
	for _, x := range []struct{ phase, tree string }{{protocol.FilesBefore, cmp.Or(v.Found, v.Base)}, {protocol.FilesAfter, v.Tree}} {
		root, err := protocol.ParseLink(x.tree)
		if err != nil {
			return nil, fmt.Errorf("run %s, %s: %w", run, v.Step, err)
		}
		out.Shots = append(out.Shots, Shot{Look{Seq: v.Seq, Time: v.Time, Step: v.Step, Phase: x.phase, Tree: x.tree, By: []string{v.Step}}, root})
	}
	return out, nil
}

// At is the look at what a step found, or at what it left.
func (s *Span) At(before bool) *Shot {
	if before {
		return s.Found()
	}
	return s.Left()
}

// NotKept tells of blocks of files that are gone, and leaves other errors as they are.
func NotKept(run protocol.RunID, root protocol.Link, err error) error {
	if !errors.Is(err, protocol.ErrNotFound) || errors.Is(err, protocol.ErrUnknownRun) {
		return err
	}
	return protocol.ErrNotFound.With("they were dropped, or lie in another store", "the files of run %s at %s are not kept: %v", run, root.Short(), err)
}

// Files lists the files of a span as they were found, or left, with what changed meanwhile and before it; sorted by path, a
// directory at a time.
func (l *Looks) Files(read tree.Read, step string, before bool) (*StepFiles, error) {
	span, err := l.Of(step)
	if err != nil {
		return nil, err
	}
	at := span.At(before)
	out := &StepFiles{Schema: "wf.files/v1", Run: l.Run, Step: step, Phase: at.Phase, Tree: CID(at.Tree), Files: []StepFile{}}
	marks, err := span.marks(read, before)
	if err != nil {
		return nil, NotKept(l.Run, at.Root, err)
	}
	for it, err := range tree.Walk(read, at.Root) {
		if err != nil {
			return nil, NotKept(l.Run, at.Root, err)
		}
		m := marks[it.Path]
		delete(marks, it.Path)
		out.Files = append(out.Files, stepFile(it.Path, it.Entry, m.change, m.by))
	}
	for path, m := range marks { // those that are gone
		out.Files = append(out.Files, stepFile(path, m.was, m.change, m.by))
	}
	slices.SortFunc(out.Files, func(a, b StepFile) int { return ComparePaths(a.Path, b.Path) })
	return out, nil
}

// ComparePaths orders paths as tree.Walk does.
func ComparePaths(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	switch {
	case n == len(a) || n == len(b):
		return len(a) - len(b)
	case a[n] == '/':
		return -1
	case b[n] == '/':
		return 1
	}
	return int(a[n]) - int(b[n])
}

func stepFile(path string, e tree.Entry, change string, by []string) StepFile {
	out := StepFile{Path: path, Mode: string(e.Mode), Size: e.Size, Why: e.Why, Change: change, By: by}
	if e.Link.Defined() {
		out.CID = e.Link.String()
	}
	return out
}

// mark is what happened to a path.
type mark struct {
	change string
	by     []string
	was    tree.Entry
}

// marks are what changed in a span, and between it and the look before.
func (s *Span) marks(read tree.Read, before bool) (map[string]mark, error) {
	marks := map[string]mark{}
	if s.Prior != nil {
		for c, err := range Changes(read, s.Prior.Root, s.Found().Root) {
			if err != nil {
				return nil, err
			}
			marks[c.Path] = mark{How(c), []string{OneOf(s.Found().By)}, c.Before}
		}
	}
	if before || len(s.Shots) == 1 {
		return marks, nil
	}
	earlier := marks
	marks = map[string]mark{}
	for c, err := range Changes(read, s.Found().Root, s.Left().Root) {
		if err != nil {
			return nil, err
		}
		marks[c.Path] = mark{change: How(c), was: c.Before}
	}
	for i := 1; i < len(s.Shots); i++ {
		for c, err := range Changes(read, s.Shots[i-1].Root, s.Shots[i].Root) {
			if err != nil {
				return nil, err
			}
			if m, ok := marks[c.Path]; ok {
				if by := OneOf(s.Shots[i].By); !slices.Contains(m.by, by) {
					m.by = append(m.by, by)
				}
				marks[c.Path] = m
			}
		}
	}
	for path, m := range earlier {
		if _, again := marks[path]; !again {
			marks[path] = m
		}
	}
	return marks, nil
}

// How is what a change is: added, changed or removed.
func How(c tree.Change) string {
	switch {
	case c.Before.Mode == "":
		return "added"
	case c.After.Mode == "":
		return "removed"
	}
	return "changed"
}

// Changes are the files in which two trees differ: tree.Diff without directories.
func Changes(read tree.Read, before, after protocol.Link) func(func(tree.Change, error) bool) {
	return func(yield func(tree.Change, error) bool) {
		for c, err := range tree.Diff(read, before, after) {
			if err == nil && (c.Before.Mode == tree.Dir || c.After.Mode == tree.Dir) {
				continue
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// OneOf is Look.By in words: the only one, or one of several.
func OneOf(by []string) string {
	if len(by) <= 1 {
		return strings.Join(by, "")
	}
	return "one of " + strings.Join(by, ", ")
}
