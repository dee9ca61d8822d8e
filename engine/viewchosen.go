package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"wf/api"
	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// roll is what a journal says of all steps of a run, as far as they are chosen and counted by it. It has no texts: of the
// records it reads those of commands whose failure is data, for their exit codes.
type roll struct {
	run protocol.RunID

	mu    sync.Mutex    // of all below
	seq   protocol.Seq  // of the newest event that was taken in
	cid   protocol.Link // of that event
	steps []*enrolled   // in the order in which they began
	named map[string]*enrolled
	// exits are data of commands, exitsMost at most: the code other than 0 with which they exited, "" for none.
	exits map[protocol.Link]string
}

func newRoll(run protocol.RunID) *roll {
	r := &roll{run: run}
	r.empty()
	return r
}

func (r *roll) empty() {
	r.seq, r.cid, r.steps, r.named, r.exits = 0, protocol.Link{}, nil, map[string]*enrolled{}, map[protocol.Link]string{}
}

// enrolled is a step on the roll.
type enrolled struct {
	id, role string
	fan      string // the visit that it is an item of, "" for none
	of       int    // items of that visit
	command  bool   // whose failure is data
	began    protocol.Seq
	last     protocol.Seq // its newest event
	done     protocol.Seq // its newest step_completed
	ended    string       // the state in which it ended; "" before that
	exit     string       // the code with which its command exited, of state nonzero
	cut      bool         // its newest reply has no end
	state    string       // one of api.StepStates
}

// exitsMost bounds roll.exits: most commands end alike.
const exitsMost = 1000

// rolls are those that were asked for last.
type rolls struct {
	mu   sync.Mutex
	kept []*roll // the newest last
}

// mostRolls bounds what is kept: a roll of 100,000 steps takes some 20 MB.
const mostRolls = 2

// of is the roll of a run, the same for all who ask at once: the first of them reads what the others find.
func (k *rolls) of(run protocol.RunID) *roll {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := newRoll(run)
	if i := slices.IndexFunc(k.kept, func(r *roll) bool { return r.run == run }); i >= 0 {
		r = k.kept[i]
		k.kept = slices.Delete(k.kept, i, i+1)
	}
	k.kept = append(k.kept, r)
	if n := len(k.kept) - mostRolls; n > 0 {
		k.kept = slices.Delete(k.kept, 0, n)
	}
	return r
}

// take reads the journal up to the event of s, the events since it was read last.
func (r *roll) take(ctx context.Context, e *Engine, s *rules.State) error {
	if r.seq > 0 {
		if x, err := e.entry(ctx, r.run, r.seq); r.seq > s.Seq || err != nil || x.CID != r.cid { // another history
			r.empty()
		}
	}
	if err := r.more(ctx, e, s); err != nil {
		r.empty()
		return err
	}
	r.stand(s)
	return nil
}

// more takes in the events up to that of s.
func (r *roll) more(ctx context.Context, e *Engine, s *rules.State) error {
	commands := map[string]bool{} // whose failure is data
	for _, role := range s.Program().Workflow.Roles {
		commands[role.Name] = role.Action == protocol.ActRun && role.ContinueOnError
	}
	var open []*enrolled // whose records say how they ended
	var records []protocol.Link
	for x, err := range upTo(e.Store.After(ctx, r.run, r.seq), s.Seq) {
		if err != nil {
			return err
		}
		d, err := dataOf(&x, protocol.EvStepStarted, protocol.EvUsage, protocol.EvStepCompleted)
		if err != nil {
			return err
		}
		r.seq, r.cid = x.Seq, x.CID
		st := r.named[x.StepName()]
		if st != nil {
			st.last = x.Seq
		}
		switch d := d.(type) {
		case protocol.StepStarted:
			if st != nil {
				continue
			}
			st = &enrolled{id: x.StepName(), role: d.Role, began: x.Seq, last: x.Seq, command: commands[d.Role]}
			if d.Item != nil {
				st.fan, st.of = fmt.Sprintf("%s#%d", d.Role, d.Visit), d.Of
			}
			r.named[st.id], r.steps = st, append(r.steps, st)
		case protocol.Usage:
			if st != nil && d.Kind == protocol.UsageTurn && d.Child == nil {
				st.cut = d.Stop == protocol.StopLength
			}
		case protocol.StepCompleted:
			if st == nil {
				continue
			}
			st.done, st.exit = x.Seq, ""
			if st.ended = string(d.Status); d.Status == "" || d.Status == protocol.StepOK && st.command { // an old journal does not say
				open, records = append(open, st), append(records, d.Record)
			}
		}
	}
	return r.read(ctx, e, open, records)
}

// aheadRecords is how many records are read at once from a store that can.
const aheadRecords = 256

// read reads how steps ended in their records.
func (r *roll) read(ctx context.Context, e *Engine, steps []*enrolled, records []protocol.Link) error {
	many, together := e.Store.(cas.Together)
	for len(steps) > 0 {
		n, got := min(len(steps), aheadRecords), map[protocol.Link][]byte{}
		if together {
			blocks, err := many.Blocks(ctx, records[:n])
			if err != nil {
				return err
			}
			for _, b := range blocks {
				got[b.Link] = b.Data
			}
		}
		read := func(l protocol.Link) ([]byte, error) {
			if b, ok := got[l]; ok {
				return b, nil
			}
			return e.Store.Block(ctx, l)
		}
		for i, st := range steps[:n] {
			if err := r.endedAs(read, st, records[i]); err != nil {
				return fmt.Errorf("step %s: %w", st.id, err)
			}
		}
		steps, records = steps[n:], records[n:]
	}
	return nil
}

// endedAs takes in how a step ended, by its record.
func (r *roll) endedAs(read Reader, st *enrolled, l protocol.Link) error {
	var record protocol.StepRecord
	if err := decode(read, l, &record); err != nil {
		return err
	}
	st.ended = string(record.Status)
	if !st.command || record.Status != protocol.StepOK || !record.Data.Defined() {
		return nil
	}
	exit, known := r.exits[record.Data]
	if !known {
		raw, err := protocol.PayloadBytes(read, record.Data)
		if err != nil {
			return err
		}
		var data struct {
			Exit any `json:"exit_code"`
		}
		if err := json.Unmarshal(raw, &data); err != nil {
			return err
		}
		code, number := data.Exit.(float64)
		if number && code != 0 {
			exit = strconv.FormatFloat(code, 'f', -1, 64)
		}
		if len(r.exits) < exitsMost {
			r.exits[record.Data] = exit
		}
	}
	if exit != "" {
		st.ended, st.exit = api.StepNonzero, exit
	}
	return nil
}

// stand takes over the states of the visits that go on, which the journal does not name.
func (r *roll) stand(s *rules.State) {
	for _, st := range r.steps {
		if st.state = cmp.Or(st.ended, api.StepRunning); st.cut && st.state == string(protocol.StepOK) {
			st.state = api.StepCutOff
		}
	}
	for v := range s.Visits() {
		st := r.named[v.Step.String()]
		if st == nil || v.Mode == rules.Ended {
			continue
		}
		st.state = s.Shown(v.Mode, v.Begun.Via)
		if v.Held != nil && st.state == api.StepRunning {
			st.state = api.StepHeld
		}
	}
	for id := range s.InLine {
		if st := r.named[id]; st != nil {
			st.state = api.StepQueued
		}
	}
}

// sums are what there is of the steps of a run in all.
type sums struct {
	matching *int // steps that are chosen; nil where none were
	fans     []api.FanTally
}

// chosen finds the steps of a window that chooses by what steps are.
func (e *Engine) chosen(ctx context.Context, run protocol.RunID, w api.Window) (*rules.State, page, sums, error) {
	r := newRoll(run)
	if w.At == 0 {
		r = e.rolls.of(run)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := e.stateAt(ctx, run, w.At) // not before: the roll may be newer by then
	if err != nil {
		return nil, page{}, sums{}, err
	}
	if err := r.take(ctx, e, s); err != nil {
		return nil, page{}, sums{}, fmt.Errorf("run %s: %w", run, err)
	}
	if !w.Chooses() {
		p := r.folded(w)
		p.spans = r.spans(p.steps)
		return s, p, sums{fans: r.fans()}, nil
	}
	var found []*beginning
	for _, st := range slices.Backward(r.steps) {
		if w.Before > 0 && st.began >= w.Before || !st.fits(w) {
			continue
		}
		if found = append(found, &beginning{step: st.id, seq: st.began}); w.Limit > 0 && len(found) > w.Limit {
			break
		}
	}
	p := pageOf(found, w.Limit)
	p.spans = r.spans(p.steps)
	return s, p, sums{new(r.matching(w)), r.fans()}, nil
}

// folded are the newest steps of a window in which long fan-outs count as one.
func (r *roll) folded(w api.Window) page {
	items := map[string]int{}
	for _, st := range r.steps {
		items[st.fan]++
	}
	lines := []*line{}
	long := map[string]*line{}
	for _, st := range r.steps {
		of := long[st.fan]
		switch {
		case st.fan == "" || items[st.fan] <= w.Fold || of == nil:
			of = &line{began: st.began, steps: []string{st.id}}
			if lines = append(lines, of); st.fan != "" && items[st.fan] > w.Fold {
				long[st.fan] = of
				of.odd(st)
			}
		default:
			of.odd(st)
		}
	}
	p := page{first: 1, steps: map[string]bool{}}
	if n := slices.IndexFunc(lines, func(l *line) bool { return w.Before > 0 && l.began >= w.Before }); n >= 0 {
		lines = lines[:n]
	}
	for i, l := range slices.Backward(lines) {
		if w.Limit > 0 && len(lines)-i > w.Limit || len(p.steps) > 0 && len(p.steps)+len(l.steps) > api.MaxSteps {
			p.earlier = lines[i+1].began
			break
		}
		for _, step := range l.steps {
			p.steps[step] = true
		}
		p.first = l.began
	}
	return p
}

// line is a step that is shown, or a fan-out with the items of it that are.
type line struct {
	began protocol.Seq
	steps []string
	odds  int
}

// odd has an item shown that wants to be looked at.
func (l *line) odd(st *enrolled) {
	if !api.StepOdd(st.state) || l.odds == api.FoldOdd {
		return
	}
	if l.odds++; !slices.Contains(l.steps, st.id) {
		l.steps = append(l.steps, st.id)
	}
}

// spanGap is how many events are read rather than looked for anew.
const spanGap = 64

// spans are the parts of the journal that have the events of some steps.
func (r *roll) spans(steps map[string]bool) []span {
	parts := []span{}
	for _, st := range r.steps {
		if !steps[st.id] {
			continue
		}
		if n := len(parts) - 1; n >= 0 && st.began <= parts[n].last+spanGap {
			parts[n].last = max(parts[n].last, st.last)
		} else {
			parts = append(parts, span{st.began, st.last})
		}
	}
	return parts
}

func (st *enrolled) fits(w api.Window) bool {
	return (len(w.States) == 0 || slices.Contains(w.States, st.state)) && (w.Role == "" || st.role == w.Role)
}

// matching is how many steps are of the states and the role of a window.
func (r *roll) matching(w api.Window) (n int) {
	for _, st := range r.steps {
		if st.fits(w) {
			n++
		}
	}
	return n
}

// fans counts the items of each fan-out.
func (r *roll) fans() (fans []api.FanTally) {
	at := map[string]int{}
	for _, st := range r.steps {
		if st.fan == "" {
			continue
		}
		i, ok := at[st.fan]
		if !ok {
			i = len(fans)
			at[st.fan], fans = i, append(fans, api.FanTally{ID: st.fan, States: map[string]int{}, Began: st.began})
		}
		fans[i].Ended = max(fans[i].Ended, st.done)
		if st.state == api.StepNonzero {
			if fans[i].Exits == nil {
				fans[i].Exits = map[string]int{}
			}
			fans[i].Exits[st.exit]++
		}
		fans[i].Items = max(fans[i].Items, st.of)
		fans[i].States[st.state]++
	}
	return fans
}
