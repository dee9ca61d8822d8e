package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"wf/agentkit/tape"
	"wf/api"
	"wf/engine"
	"wf/engine/lang"
	"wf/files"
	"wf/protocol"
	"wf/roles/workspace"
	"wf/service/compose"
)

// What of a run stands in the answer.
const (
	outputsKept = 64 << 10 // bytes of outputs; longer ones are left out
	wrongKept   = 50       // lines
	longLine    = 8 << 10  // bytes of a line of a check that are shown at once
)

// How the requests of a run were answered by a tape.
const (
	tapeRequest  = "request"
	tapeSequence = "sequence"
)

// run performs and judges one run of a case, in dir. One that was interrupted goes on.
func (x *evaluation) run(ctx context.Context, j job) (r api.EvalRun, dir string, err error) {
	dir, request, err := x.place(ctx, j)
	if err != nil {
		return r, dir, err
	}
	l := x.Launch
	l.Program, l.Source, l.File, l.Description = x.Definition.Program, x.Definition.Source, x.Definition.Path, x.Definition.Program.Workflow.Description
	l.Title, l.RequestID, l.Workspace = l.Program.Workflow.Name+": "+j.c.Name, request, dir
	if l.Inputs, err = l.Program.Inputs(j.c.Inputs); err != nil {
		return r, dir, err
	}
	l.Cache = protocol.CacheOff // else one run would tell what another found
	var play *tape.Play
	if x.taped(j.c) {
		name, err := x.tapes.model(j.c.Tape)
		if err != nil {
			return r, dir, err
		}
		l.Models = map[string][]string{"": {name}}
		play = &tape.Play{Sequence: true}
		ctx = tape.With(ctx, play)
	}
	var rec *recording
	if x.Record {
		if rec, err = newRecording(dir + ".tape"); err != nil {
			return r, dir, err
		}
		defer rec.drop()
		ctx = tape.Recording(ctx, rec.Recorder)
	}
	run, fresh, err := x.Begin(ctx, l)
	if err != nil {
		return r, dir, err
	}
	r.Run = run
	v, cut, err := x.drive(ctx, j, run, fresh)
	if err == nil && v == nil {
		v, err = x.Engine.View(context.WithoutCancel(ctx), run)
	}
	if v != nil {
		r.Status, r.Steps, r.ActiveMS, r.CostUSD, r.Tokens = v.Status, v.Count(), v.ActiveMS, v.CostUSD, tokensOf(v)
		if len(v.Outputs) <= outputsKept {
			r.Outputs = v.Outputs
		}
	}
	if play != nil {
		r.CostUSD = new(0.0) // a tape costs nothing
		if err := x.told(&r, j, play.Count()); err != nil {
			return r, dir, err
		}
	}
	if err != nil {
		return r, dir, err
	}
	if cut {
		r.Verdict, r.Why, r.Code, r.Hint = api.EvalCut, "run "+string(run)+" reached a limit of the evaluation", ErrEvalLimit.Code, ErrEvalLimit.Hint
		return r, dir, nil
	}
	if err := x.stopped(v); err != nil {
		return r, dir, err
	}
	if err := x.judge(ctx, j, v, dir, &r); err != nil {
		return r, dir, err
	}
	if rec != nil {
		if err := x.keep(rec, j.c); err != nil {
			return r, dir, err
		}
		r.Recorded = j.c.Tape
	}
	return r, dir, nil
}

// told puts how a tape answered into a run. A tape that lacks an answer is an error.
func (x *evaluation) told(r *api.EvalRun, j job, n tape.Count) error {
	r.Tape = &api.EvalTape{File: j.c.Tape, Match: tapeRequest, Requests: n.Requests, Differed: n.Differed, Missed: n.Missed}
	if n.Differed > 0 {
		r.Tape.Match = tapeSequence
	}
	if n.Missed == 0 {
		return nil
	}
	return protocol.ErrModel.With(fmt.Sprintf("record it again: wf eval %s --case %s --record", protocol.ShellWord(x.File), protocol.ShellWord(j.c.Name)),
		"the tape %s lacks an answer: %s", j.c.Tape, firstLines(n.Miss, 12))
}

// firstLines is a text without the advice that its last line is.
func firstLines(s string, most int) string {
	if i := strings.LastIndex(s, "\nFix: "); i >= 0 {
		s = s[:i]
	}
	lines := strings.Split(s, "\n")
	return strings.TrimRight(strings.Join(lines[:min(len(lines), most)], "\n"), "\n")
}

// tokensOf is what the models of a run read and wrote.
func tokensOf(v *api.Run) (sum int64) {
	for _, n := range []*int64{v.Usage.Input, v.Usage.Output} {
		if n != nil {
			sum += *n
		}
	}
	return sum
}

// drive drives a run until it has ended, and answers what it asks. cut is set where a limit of the evaluation stopped it. One
// that is not fresh goes on also where an error suspended it: that may have been put right.
func (x *evaluation) drive(ctx context.Context, j job, run protocol.RunID, fresh bool) (v *api.Run, cut bool, err error) {
	if v, err = x.Engine.View(ctx, run); err != nil {
		return nil, false, err
	}
	if !fresh {
		x.purse.spendMore(v.CostUSD, x.notes.before[j.name].CostUSD)
	}
	for again := !fresh; goesOn(v) || again && !v.Status.Final(); again = false {
		if v.Status == protocol.Waiting {
			if err := x.answer(ctx, j, v); err != nil {
				return v, false, err
			}
		}
		b, err := x.bounds(ctx, j.c, v)
		if err != nil {
			return v, errors.Is(err, ErrEvalLimit), notLimit(err)
		}
		before := micros(v.CostUSD)
		err = x.Keeper.Resume(ctx, run, protocol.Running, engine.DriveOptions{By: compose.User(), Limits: b.limits})
		if err == nil {
			err = x.Follow(ctx, run)
		}
		now, failed := x.Engine.View(context.WithoutCancel(ctx), run)
		if now != nil {
			v = now
		}
		if b.reserved > 0 {
			x.purse.settle(b.reserved, micros(v.CostUSD)-before)
		}
		if err = errors.Join(err, failed); err != nil {
			return v, false, err
		}
		switch {
		case b.reserved > 0 && v.CostUSD == nil && x.tokens(j.c) == 0:
			return v, false, protocol.ErrPrice.With("set the price of its models (wf cost "+string(run)+" names them), or bound the tokens of each run: --max-tokens", "the cost limit cannot hold: the cost of run %s is not known", run)
		case v.Status == protocol.Waiting:
		case v.Status != protocol.Suspended || v.Suspended != protocol.ByLimit:
			return v, false, nil
		case b.tokens > 0 && tokensOf(v) >= b.tokens:
			return v, true, nil
		case b.cost == 0 || micros(v.CostUSD) < b.cost:
			return v, false, nil // a limit of its workflow
		} // else its share of the money is used up: it goes on with what is left
	}
	return v, false, nil
}

// notLimit is an error that is none of the limit of the evaluation.
func notLimit(err error) error {
	if errors.Is(err, ErrEvalLimit) {
		return nil
	}
	return err
}

// bounds are the limits that the evaluation sets for a run, beside those of its workflow.
type bounds struct {
	limits   []protocol.LimitChanged
	tokens   int64 // 0 where it sets none
	cost     int64 // in micro-dollars, likewise
	reserved int64 // of the money
}

// bounds reserves what a run may cost from here on.
func (x *evaluation) bounds(ctx context.Context, c *lang.SuiteCase, v *api.Run) (b bounds, err error) {
	own := x.Definition.Program.Workflow.Limits
	tokens := x.tokens(c)
	if tokens > 0 && tokens != own.Tokens {
		b.tokens = tokens
		b.limits = append(b.limits, protocol.LimitChanged{Limit: "tokens", Max: tokens, By: compose.User()})
	}
	if x.Cost == 0 || x.taped(c) || x.most == 0 { // without a price the tokens alone are bounded
		return b, nil
	}
	spent := micros(v.CostUSD)
	want := float64(mostOfALimit)
	if own.Cost > 0 {
		want = float64(max(own.Cost-spent, 1))
	}
	if tokens > 0 && x.most > 0 {
		want = min(want, math.Ceil(float64(max(tokens-tokensOf(v), 1))*float64(x.most)/1e6))
	}
	if want >= mostOfALimit {
		want = 0
	}
	if b.reserved, err = x.purse.reserve(ctx, int64(want)); err != nil {
		return b, err
	}
	if b.reserved == 0 {
		return b, ErrEvalLimit
	}
	limit := min(spent+b.reserved, mostOfALimit)
	if own.Cost == 0 || limit < own.Cost {
		b.cost = limit
		b.limits = append(b.limits, protocol.LimitChanged{Limit: "cost_usd", Max: limit, By: compose.User()})
	}
	return b, nil
}

// answer answers the questions that a run waits for.
func (x *evaluation) answer(ctx context.Context, j job, v *api.Run) error {
	answered := false
	for _, w := range v.Waiting {
		step := w.Step
		role, visit := roleOf(v, step)
		if w.Kind != protocol.WaitQuestion && w.Kind != protocol.WaitChoice || role == "" {
			continue
		}
		list := j.c.Answers[role]
		if visit < 1 || visit > len(list) {
			continue
		}
		a := list[visit-1]
		if _, err := x.Answer(ctx, v.ID, api.Answer{Step: step, Choice: a.Choice, Text: a.Text, Fields: json.RawMessage(a.Fields), Source: "eval"}); err != nil {
			return fmt.Errorf("answers of case %q: %w", j.c.Name, err)
		}
		answered = true
	}
	if answered {
		return nil
	}
	hint, what := "a case has answers for questions (ask) alone; leave out what else waits, such as by an input of the workflow", "for something else than a question"
	for _, w := range v.Waiting {
		role, visit := roleOf(v, w.Step)
		if w.Kind == protocol.WaitQuestion || w.Kind == protocol.WaitChoice {
			what = fmt.Sprintf("for an answer to %s", w.Step)
			if role != "" {
				hint = fmt.Sprintf("add it to the case: answers: {%s: …}", role)
				if visit > 1 {
					hint = fmt.Sprintf("add the answer to visit %d: answers: {%s: [ … ]}", visit, role)
				}
			}
			break
		}
		what = fmt.Sprintf("for a %s at %s", w.Kind, w.Step)
	}
	return protocol.ErrWaiting.With(hint, "run %s waits %s", v.ID, what)
}

// roleOf is the role of a visit of a run itself, and its number; "" is of none.
func roleOf(v *api.Run, step string) (role string, visit int) {
	for _, s := range v.Steps {
		if s.ID == step {
			return s.Role, s.Visit
		}
	}
	return "", 0
}

// stopped is the error of a run that has not come to what its workflow makes of it.
func (x *evaluation) stopped(v *api.Run) error {
	switch {
	case v.Status.Final():
		return nil
	case v.Status != protocol.Suspended, v.Suspended == protocol.ByInterrupt:
		return protocol.ErrNotFinal.With("--continue goes on with it", "run %s is not over: it is %s", v.ID, v.Status)
	}
	err := x.Unfit(v)
	if err == nil {
		return nil
	}
	return protocol.Hinted(err, strings.Replace(protocol.HintOf(err), "wf resume "+string(v.ID), "evaluate again", 1))
}

// judge holds a run against what its case expects, and has it checked.
func (x *evaluation) judge(ctx context.Context, j job, v *api.Run, dir string, r *api.EvalRun) error {
	ended, err := endedOf(v)
	if err != nil {
		return err
	}
	r.Wrong = j.c.Expect.Judge(ended)
	if j.c.Check != "" && len(r.Wrong) == 0 {
		code, last, err := x.check(ctx, j.c, v, dir)
		if err != nil {
			return err
		}
		if r.Exit = &code; code != 0 {
			wrong := fmt.Sprintf("check: ended with %d", code)
			if last != "" {
				wrong += ": " + lang.CutText(last, 300)
			}
			r.Wrong = append(r.Wrong, wrong)
		}
	}
	if n := len(r.Wrong); n > wrongKept {
		r.Wrong = append(r.Wrong[:wrongKept:wrongKept], fmt.Sprintf("… and %d more", n-wrongKept))
	}
	r.Verdict = api.EvalPassed
	if len(r.Wrong) > 0 {
		r.Verdict, r.Why = api.EvalFailed, strings.Join(r.Wrong, "\n")
	}
	return nil
}

// check runs the check of a case, confined unless the user said otherwise: the suite, and what a run left, may be written
// by an agent.
func (x *evaluation) check(ctx context.Context, c *lang.SuiteCase, v *api.Run, dir string) (code int, last string, err error) {
	of := Check{Command: c.Check, Sandbox: protocol.SandboxOn}
	if x.Show != nil {
		said := ""
		tell := func(line string) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.Show(c.Name, line)
		}
		of.Show = func(text string) {
			said += text
			for {
				line, rest, whole := strings.Cut(said, "\n")
				if !whole && len(said) < longLine {
					return
				}
				tell(line)
				said = rest
			}
		}
		defer func() {
			if said != "" {
				tell(said)
			}
		}()
	}
	if x.Sandbox == protocol.SandboxOff {
		of.Sandbox = protocol.SandboxOff
	}
	return (&search{Bisector: &Bisector{Local: x.Local, Check: of}}).check(ctx, v, dir)
}

// endedOf is a run as expectations see it.
func endedOf(v *api.Run) (lang.Ended, error) {
	e := lang.Ended{Status: string(v.Status), Steps: map[string]*lang.Step{},
		Run: map[string]any{"status": string(v.Status), "reason": v.Reason, "code": v.Code, "cost_usd": nil, "tokens": int(tokensOf(v)), "steps": v.Count()}}
	if v.CostUSD != nil {
		e.Run["cost_usd"] = *v.CostUSD
	}
	var err error
	object := func(b protocol.JSON) map[string]any {
		if len(b) == 0 || string(b) == "null" {
			return nil
		}
		m, failed := lang.DecodeObject(json.RawMessage(b))
		err = errors.Join(err, failed)
		return m
	}
	e.Inputs, e.Outputs = object(v.Info.Inputs), object(v.Outputs)
	items := map[string][]*api.Step{}
	for _, s := range v.Steps {
		if s.Item != nil {
			if of := items[s.Role]; len(of) > 0 && of[0].Visit != s.Visit {
				items[s.Role] = nil
			}
			items[s.Role] = append(items[s.Role], s)
		}
		e.Steps[s.Role] = stepOf(s, &err)
	}
	for role, of := range items { // of a fan-out the list in item order
		slices.SortFunc(of, func(a, b *api.Step) int { return *a.Item - *b.Item })
		list := make([]any, len(of))
		for i, s := range of {
			list[i] = stepOf(s, &err).Output
		}
		e.Steps[role].Output = list
	}
	return e, err
}

func stepOf(s *api.Step, failed *error) *lang.Step {
	out := &lang.Step{Text: s.Text, Status: s.Status, Visit: s.Visit}
	if len(s.Output) > 0 && string(s.Output) != "null" {
		v, err := lang.DecodeJSON([]byte(s.Output))
		*failed = errors.Join(*failed, err)
		out.Output = v
	}
	if m, ok := out.Output.(map[string]any); ok {
		if n, ok := m["exit_code"].(int); ok && s.Action == protocol.ActRun {
			out.ExitCode = &n
		}
		if _, has := m["text"]; !has && s.Text != "" {
			m["text"] = s.Text
		}
	}
	return out
}

// recording is what the models of a run answer, in a file beside its workspace.
type recording struct {
	*tape.Recorder
	file string
}

func newRecording(file string) (*recording, error) {
	if err := remove(file); err != nil {
		return nil, err
	}
	f, err := files.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &recording{tape.Record(f), file}, nil
}

// drop removes it, kept or not.
func (r *recording) drop() {
	_ = r.Close() // that of one that is kept was looked at
	_ = remove(r.file)
}

// keep makes a recording the tape of a case: whole, or the old one stays.
func (x *evaluation) keep(r *recording, c *lang.SuiteCase) error {
	if err := r.Close(); err != nil {
		return err
	}
	text, err := files.Read(r.file, mostOfATape)
	if err != nil {
		return err
	}
	at, err := workspace.Find(x.Dir, "", filepath.FromSlash(c.Tape), workspace.Write)
	if err == nil {
		err = at.Replace(string(text))
		at.Close()
	}
	if err != nil {
		return protocol.ErrUsage.With("a tape is a file within the directory of the suite", "the tape of case %q, %s, was not written: %v", c.Name, c.Tape, err)
	}
	return nil
}

// tapeShelf are the tapes of the cases that are under way.
type tapeShelf struct {
	x     *evaluation
	mu    sync.Mutex
	cases map[string]int // that are not decided, by their tape
	open  map[string]*shelved
}

type shelved struct {
	once     sync.Once
	name     string
	giveBack func()
	err      error
}

// model opens the tape of a case, once, and gives the name of the model that answers from it.
func (s *tapeShelf) model(file string) (string, error) {
	s.mu.Lock()
	t := s.open[file]
	if t == nil {
		t = &shelved{}
		s.open[file] = t
	}
	s.mu.Unlock()
	t.once.Do(func() { t.name, t.giveBack, t.err = s.read(file) })
	return t.name, t.err
}

// drop forgets a tape when the last case with it is decided.
func (s *tapeShelf) drop(file string) {
	s.mu.Lock()
	if s.cases[file]--; s.cases[file] > 0 {
		s.mu.Unlock()
		return
	}
	t := s.open[file]
	delete(s.open, file)
	s.mu.Unlock()
	if t != nil && t.giveBack != nil {
		t.giveBack()
	}
}

// mostOfATape bounds a tape, in bytes: it is held in memory.
const mostOfATape = 256 << 20

func (s *tapeShelf) read(file string) (name string, giveBack func(), err error) {
	refused := func(err error) error {
		hint := "a tape is a file within the directory of the suite"
		if errors.Is(err, fs.ErrNotExist) {
			hint = "record it: wf eval " + protocol.ShellWord(s.x.File) + " --record"
		}
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err
		}
		return protocol.ErrModel.With(hint, "the tape %s cannot be read: %v", file, err)
	}
	at, err := workspace.Find(s.x.Dir, "", filepath.FromSlash(file), workspace.Read)
	if err != nil {
		return "", nil, refused(err)
	}
	defer at.Close()
	f, err := at.Open()
	if err != nil {
		return "", nil, refused(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() > mostOfATape {
		err = fmt.Errorf("it has %d bytes, and may have %d", info.Size(), mostOfATape)
	}
	if err != nil {
		return "", nil, refused(err)
	}
	name = compose.TapeName(filepath.Join(s.x.Dir, filepath.FromSlash(file)))
	m, err := tape.Read(name, io.LimitReader(f, mostOfATape))
	if err != nil {
		return "", nil, refused(err)
	}
	return name, s.x.Lend(name, m), nil
}
