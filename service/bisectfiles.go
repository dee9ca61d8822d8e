package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"wf/api"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/service/query"
)

// A FilesBisector finds the step of a run, and the tool call of it, behind which the files of the workspace fail a check. It
// lays out what the run recorded of them, look by look, and performs nothing.
//
//	looks with other files ──first good? last bad?──► halves ──► the last good look, the first bad one ──► a merge: item by item
//
// What was checked is remembered by its tree: the same command goes on.
type FilesBisector struct {
	*Local
	Run    protocol.RunID
	Within string // a step: its looks alone; "" are those of the run
	Good   string // the step whose files, as it left them, pass; "" is the first look
	Bad    string // the step whose files fail; "" is the last look

	Check  Check
	Repeat int      // checks of each tree; they have to agree
	Trials int      // at most so many checks; 0 is no bound
	Carry  []string // globs of files that the run did not record, which come from the workspace as it is
	Anew   bool     // what was checked before is forgotten

	// Tell is called with each trial when it has ended, and with one without a verdict when its files are laid out.
	Tell func(*api.BisectFiles, *api.LookTrial)
}

// filesSearch is a bisect of files under way.
type filesSearch struct {
	*FilesBisector
	out     *api.BisectFiles
	notes   *trialNotes[noted]
	run     *api.Run
	foreign bool // the run came from elsewhere
	agents  bool // its workflow has one
	read    tree.Read
	made    map[protocol.Link][]byte // blocks of trees on the way of a merge
	carry   tree.Chooser             // nil for nothing

	points   []api.Shot // looks whose files are not those of the one before
	verdicts map[protocol.Link]*api.LookTrial
	leftOut  map[string]bool
}

// Find searches. Where it is interrupted or reaches a limit, what it has found so far is in the answer, beside the error.
func (b *FilesBisector) Find(ctx context.Context) (_ *api.BisectFiles, err error) {
	s := &filesSearch{FilesBisector: b, verdicts: map[protocol.Link]*api.LookTrial{}, leftOut: map[string]bool{}, made: map[protocol.Link][]byte{}}
	s.read = s.overlay(ctx)
	s.out = &api.BisectFiles{Schema: api.BisectFilesSchema, Run: b.Run, Check: b.Check.Command, By: []string{}, Trials: []api.LookTrial{}}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	l, err := b.Looks(ctx, b.Run)
	if err == nil {
		err = s.between(l)
	}
	if err != nil {
		return nil, err
	}
	s.out.Looks, s.out.Good, s.out.Bad = len(s.points), s.points[0].Look, s.points[len(s.points)-1].Look
	if err := s.open(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.notes.close(s.out.Complete)) }()
	return s.out, s.find(ctx, l)
}

// between finds the looks to be told apart.
func (s *filesSearch) between(l *api.Looks) error {
	whole, err := l.Of(s.Within)
	if err != nil {
		return err
	}
	shots := whole.Shots
	end := func(step, flag string, at int) (int, error) {
		if step == "" {
			return at, nil
		}
		span, err := l.Of(step)
		if err != nil {
			return 0, err
		}
		i := slices.IndexFunc(shots, func(x api.Shot) bool { return x.Seq == span.Left().Seq })
		if i < 0 {
			return 0, protocol.ErrUsage.With("", "%s %s: its files are none of those that are bisected", flag, step)
		}
		return i, nil
	}
	first, err := end(s.Good, "--good", 0)
	if err != nil {
		return err
	}
	last, err := end(s.Bad, "--bad", len(shots)-1)
	if err != nil {
		return err
	}
	if first >= last && (s.Good != "" || s.Bad != "") {
		return protocol.ErrUsage.With("wf files "+string(s.Run)+":STEP lists what a step left", "what is good has to be left before what is bad: %s comes behind %s", shots[first].Phrase(), shots[last].Phrase())
	}
	for _, x := range shots[first : last+1] {
		if n := len(s.points); n == 0 || s.points[n-1].Root != x.Root {
			s.points = append(s.points, x)
		}
	}
	if len(s.points) < 2 && first == last {
		return ErrNotBisectable.With("wf files "+string(s.Run)+" --changed shows what steps changed; files that are ignored are not recorded", "no file changed in %s", api.Ref{Run: s.Run, Step: s.Within})
	}
	if len(s.points) < 2 {
		return ErrNotBisectable.With("wf files "+string(s.Run)+" --changed shows what steps changed; files that are ignored are not recorded", "no file changed between %s and %s of run %s", shots[first].Phrase(), shots[last].Phrase(), s.Run)
	}
	return nil
}

// find tries both ends, and halves what lies between.
func (s *filesSearch) find(ctx context.Context, l *api.Looks) error {
	last := len(s.points) - 1
	for _, end := range []struct {
		at               int
		want             api.Verdict
		wants, flag, fix string
	}{{0, api.Good, "have to pass", "--good", "pass"}, {last, api.Bad, "have to fail", "--bad", "fail"}} {
		t, err := s.try(ctx, s.points[end.at], s.points[end.at].Root, "")
		if err != nil {
			return err
		}
		if t.Verdict != end.want {
			return s.notAnEnd(&s.points[end.at].Look, t, end.wants, end.flag, end.fix)
		}
	}
	good, bad, err := turning(len(s.points), func(at int) (api.Verdict, error) {
		t, err := s.try(ctx, s.points[at], s.points[at].Root, "")
		if err != nil {
			return "", err
		}
		switch t.Verdict {
		case api.Good:
			s.out.Good = s.points[at].Look
		case api.Bad:
			s.out.Bad = s.points[at].Look
		}
		return t.Verdict, nil
	})
	if err != nil {
		return err
	}
	if err := s.answer(ctx, l, good, bad); err != nil {
		return err
	}
	s.out.Complete = true
	return nil
}

// notAnEnd says that the files of an end are not as they have to be.
func (s *filesSearch) notAnEnd(at *api.Look, t *api.LookTrial, wants, flag, fix string) error {
	see := at.LayOut(s.Run) + " lays them out"
	if t.Verdict == api.Unresolved {
		if len(t.Checks) == 0 {
			return ErrNotBisectable.With(flag+" names a step whose files are kept", "the files of %s cannot be checked: %s", at.Phrase(), t.Why)
		}
		return ErrNotBisectable.With("make the check tell good from bad, repeat it more or less often (-n), or name another step with "+flag+"; "+see, "the files of %s are unresolved: %s", at.Phrase(), t.Why)
	}
	hint := flag + " names a step whose files " + fix + ", as in " + flag + " " + string(s.Run) + ":STEP"
	if t.Verdict == api.Bad {
		hint += "; ignored files, such as dependencies, are not recorded: --carry GLOB brings them"
	}
	return ErrNotBisectable.With(hint+"; "+see, "the files of %s %s the check, and they are %s: %s", at.Phrase(), wants, t.Verdict, t.Why)
}

// untoldShown is how many looks that can be told to be neither an answer names.
const untoldShown = 100

// answer says what lies between the last good look and the first bad one.
func (s *filesSearch) answer(ctx context.Context, l *api.Looks, good, bad int) error {
	out := s.out
	left, right := &s.points[good], &s.points[bad]
	out.Good, out.Bad, out.Untold = left.Look, right.Look, bad-good-1
	for i := good + 1; i <= bad; i++ {
		x := &s.points[i]
		out.By = append(out.By, x.By...)
		if i < bad && len(out.Between) < untoldShown {
			out.Between = append(out.Between, x.Look)
		}
	}
	slices.Sort(out.By)
	out.By = slices.Compact(out.By)
	if out.Untold == 0 {
		told, err := s.merge(ctx, l, left, right)
		if err != nil {
			return err
		}
		if !told && len(out.By) == 1 && right.Step == out.By[0] {
			out.Call, out.Tool = right.Call, right.Tool
		}
	}
	steps := slices.DeleteFunc(slices.Clone(out.By), func(by string) bool { return by == api.Outside })
	if len(steps) == 1 {
		if step, err := s.Step(ctx, s.Run, steps[0]); err == nil {
			out.Child = step.Child
		}
	}
	if out.Diff != nil {
		return nil
	}
	by, err := s.changers(good, bad)
	if err != nil {
		return err
	}
	out.Diff, err = query.FilesDiff(s.read, s.side(left), s.side(right), func(path string) []string { return by[path] })
	return err
}

// side is a look as one side of a comparison.
func (s *filesSearch) side(x *api.Shot) api.FilesSide {
	return api.FilesSide{Run: s.Run, Step: x.Step, Phase: x.Phase, Tree: x.Tree}
}

// changers are the visits that may have changed each path between two points.
func (s *filesSearch) changers(good, bad int) (map[string][]string, error) {
	by := map[string][]string{}
	for i := good + 1; i <= bad; i++ {
		from := &s.points[i-1]
		who := api.OneOf(s.points[i].By)
		for c, err := range api.Changes(s.read, from.Root, s.points[i].Root) {
			if errors.Is(err, protocol.ErrNotFound) {
				break // the files of a look between are not kept: its changes show in the diff
			}
			if err != nil {
				return nil, err
			}
			if !slices.Contains(by[c.Path], who) {
				by[c.Path] = append(by[c.Path], who)
			}
		}
	}
	return by, nil
}

// try has a tree checked, as often as is asked for while the checks agree. One that is not kept is unresolved.
func (s *filesSearch) try(ctx context.Context, at api.Shot, root protocol.Link, item string) (*api.LookTrial, error) {
	if known := s.verdicts[root]; known != nil {
		return known, nil
	}
	t := &api.LookTrial{Look: at.Look, Item: item}
	for n := range s.Repeat {
		c, why, err := s.checked(ctx, root, n, t)
		if gone, ok := errors.AsType[*notKeptError](err); ok {
			t.Verdict, t.Why = api.Unresolved, protocol.Flat(gone.error).Message
			break
		}
		if err != nil {
			return nil, err
		}
		t.Checks = append(t.Checks, c)
		s.out.Checks++
		if !c.Remembered {
			s.out.Performed++
		}
		switch {
		case n == 0:
			t.Verdict, t.Why = c.Verdict, why
		case c.Verdict != t.Verdict:
			t.Verdict, t.Why = api.Unresolved, fmt.Sprintf("%s in one check, %s in another", t.Checks[0].Verdict, c.Verdict)
		}
		if t.Verdict == api.Unresolved {
			break
		}
	}
	s.verdicts[root] = t
	s.out.Trials = append(s.out.Trials, *t)
	s.Tell(s.out, t)
	return t, nil
}
