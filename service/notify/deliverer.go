package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

// A Configured is a sink that a config names.
type Configured struct {
	protocol.Sink
	Journal   string   // under which name deliveries are kept
	Workflows []string // that it is for; none is all
}

// Store is what deliveries ask of a store of runs.
type Store interface {
	protocol.Feed
	cas.Lists
	cas.Backing
	// Commit makes a batch durable; see engine.Ledger.
	Commit(ctx context.Context, b cas.Batch) error
	// MayGoOn is nil where runs may go on, else an error wrapping protocol.ErrHeld.
	MayGoOn(ctx context.Context) error
	// LockSink makes this process the only one that delivers to a sink, until unlock is called or the process ends,
	// however it ends; ok is false where another one is.
	LockSink(ctx context.Context, name string) (unlock func() error, ok bool, err error)
}

var _ Store = (*cas.Store)(nil)

// A Deliverer delivers the notifications of a store. Its fields are set before its first use.
type Deliverer struct {
	Store  Store
	Engine *engine.Engine
	Sinks  []Configured // of the configs, as far as they are trusted
	// Trusts reports whether notifications go where a workflow says; nil is never.
	Trusts func(*lang.Program) (bool, error)
	Walls  roles.Walls // of commands
	Dir    string      // workspace of commands that are told of a trigger
	// Key seals alarms: what a store from elsewhere holds is not sent. nil is where other users deliver to the same sinks.
	Key func() ([]byte, error)
	Log *slog.Logger // what cannot be done now, and is tried again
	// Notice is told what came of each attempt of Serve, once it is recorded; nil for nothing.
	Notice func(protocol.Data)
	// Now and Chance, 0 ≤ x < 1, are those of the process where they are nil.
	Now    func() time.Time
	Chance func() float64

	mu   sync.Mutex
	ways map[string]way // by what a sink says
}

// A way sends a notification: once, so that the receiver may have it although there is an error.
type way interface {
	send(ctx context.Context, m *Message, body []byte) error
}

func (d *Deliverer) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}

func (d *Deliverer) chance() float64 {
	if d.Chance != nil {
		return d.Chance()
	}
	return rand.Float64()
}

// workflowSinks is what the names of the sinks of workflows begin with.
const workflowSinks = "workflow/"

// SinkOf is the name of the journal of a sink that a workflow names.
func SinkOf(workflow, sink string) string { return workflowSinks + escape(workflow) + "/" + sink }

// escape is a name of a workflow as a part of a name: what has a meaning there, and what is long, is told apart by
// a digest.
func escape(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '/' || r <= ' ' || r == 0x7f || r == '\ufffd' {
			return '_'
		}
		return r
	}, name)
	if clean = clean[:roles.CutRunes(clean, 80)]; clean != name || strings.Trim(clean, ".") == "" {
		clean += "~" + strings.TrimPrefix(IDOf("", "", protocol.RunID(name), protocol.Link{}), "msg_")[:12]
	}
	return clean
}

// Open begins the journals of the sinks that a run of a program notifies: before the run begins, since it would
// fire nothing else. p may be nil.
func (d *Deliverer) Open(ctx context.Context, p *lang.Program) error {
	var names []string
	for _, c := range d.Sinks {
		names = append(names, c.Journal)
	}
	if p != nil && len(p.Workflow.Notify) > 0 {
		if ok, err := d.trusts(p); err != nil {
			return err
		} else if ok {
			for _, s := range p.Workflow.Notify {
				names = append(names, SinkOf(p.Workflow.Name, s.Name))
			}
		}
	}
	return Open(ctx, d.Store, d.now(), names)
}

func (d *Deliverer) trusts(p *lang.Program) (bool, error) {
	if d.Trusts == nil {
		return false, nil
	}
	return d.Trusts(p)
}

// sinkFor is what a sink is for a run: ok is false where it is not notified of it.
func (d *Deliverer) sinkFor(name string, st *rules.State) (s protocol.Sink, ok bool, err error) {
	p := st.Program()
	for _, c := range d.Sinks {
		if c.Journal == name {
			return c.Sink, len(c.Workflows) == 0 || slices.Contains(c.Workflows, p.Workflow.Name), nil
		}
	}
	for _, s := range p.Workflow.Notify {
		if SinkOf(p.Workflow.Name, s.Name) == name {
			ok, err := d.trusts(p)
			return s, ok, err
		}
	}
	return s, false, nil
}

// way is how notifications of a sink are sent. Connections are kept.
func (d *Deliverer) way(s protocol.Sink) (way, error) {
	key := fmt.Sprintf("%+v", s)
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.ways[key]; w != nil {
		return w, nil
	}
	var w way
	var err error
	switch {
	case s.Webhook != "":
		w, err = newWebhook(s, os.LookupEnv, d.now)
	case s.Command != "":
		w = command{s, d.Walls}
	default:
		w = desktop{}
	}
	if err != nil {
		return nil, err
	}
	if d.ways == nil {
		d.ways = map[string]way{}
	}
	d.ways[key] = w
	return w, nil
}

// A seen is what a look found in a run: how far it reached, and what may be notified of.
type seen struct {
	run   protocol.RunID
	to    protocol.Seq
	found []candidate
	state *rules.State // where something was found
}

// look reads the events of a run behind from. Runs that fire nothing are looked at without a finding: those of
// sub-workflows, whose questions their parents ask again, and those that came from elsewhere.
func (d *Deliverer) look(ctx context.Context, run protocol.RunID, from protocol.Seq) (seen, error) {
	out := seen{run: run, to: from}
	var s scan
	for e, err := range d.Store.After(ctx, run, max(from-1, 0)) {
		if err != nil {
			return out, err
		}
		if e.Seq <= from {
			s.last = e.Type
			continue
		}
		if err := s.add(run, &e); err != nil {
			return out, err
		}
		out.to = e.Seq
	}
	if len(s.found) == 0 {
		return out, nil
	}
	st, err := d.Engine.State(ctx, run)
	if err != nil {
		return out, err
	}
	if st.Info.Parent != nil && !st.Info.Forked.Defined() {
		return out, nil
	}
	switch err := d.Engine.Own(ctx, run); {
	case errors.Is(err, protocol.ErrForeign), errors.Is(err, protocol.ErrRolledBack):
		return out, nil
	case err != nil:
		return out, err
	}
	if st.Info.Type == protocol.ChatType { // it waits for what its user says next: that is no news
		s.found = slices.DeleteFunc(s.found, func(c candidate) bool { return c.kind == protocol.WaitQuestion })
	}
	out.found, out.state = s.found, st
	return out, nil
}

// add records what is due at a sink by what was seen, and how far that reaches.
func (d *Deliverer) add(ctx context.Context, j *journal, all []seen) error {
	type due struct {
		seen
		on []candidate
	}
	var wanted []due
	for _, x := range all {
		w := due{seen: x}
		if x.state != nil {
			s, ok, err := d.sinkFor(j.name, x.state)
			if err != nil {
				return err
			}
			for _, c := range x.found {
				if ok && s.Wants(c.On) {
					w.on = append(w.on, c)
				}
			}
		}
		wanted = append(wanted, w)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.append(ctx, d.now(), func(st *State) (drafts []cas.Draft) {
		for _, w := range wanted {
			last := j.cursor(w.run)
			for _, c := range w.on {
				if c.Seq > last {
					c.ID = IDOf(st.Origin, j.name, w.run, c.event)
					drafts = append(drafts, cas.Draft{Data: c.DeliveryDue})
					last = c.Seq
				}
			}
		}
		return drafts
	})
	if err != nil {
		return err
	}
	for _, w := range wanted {
		j.pass(w.run, w.to)
	}
	return j.append(ctx, d.now(), func(*State) []cas.Draft { return j.passing(passedRuns) })
}

// attempt sends a delivery, and gives what is to be recorded of it; nil where nothing is known of it, since ctx
// ended. One that was overtaken is not sent.
func (d *Deliverer) attempt(ctx context.Context, name string, x Delivery, age int64, overtaken bool) protocol.Data {
	err := errRepeated
	if !overtaken {
		err = d.send(ctx, name, x.DeliveryDue)
	}
	var f failure
	switch {
	case err == nil:
		return protocol.Delivered{ID: x.ID}
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, errGone), errors.Is(err, errAnswered), errors.Is(err, errRepeated):
		return protocol.DeliveryDead{ID: x.ID, Error: brief(err.Error()), Gone: true}
	case errors.As(err, &f) && f.final:
		return protocol.DeliveryDead{ID: x.ID, Error: brief(err.Error())}
	}
	pause := max(pauseAfter(x.Attempts+1, d.chance()), f.after)
	if over(age, pause) {
		return protocol.DeliveryDead{ID: x.ID, Error: brief(err.Error())}
	}
	return protocol.DeliveryFailed{ID: x.ID, Next: d.now().Add(pause).UnixMicro(), Error: brief(err.Error())}
}

func (d *Deliverer) send(ctx context.Context, name string, x protocol.DeliveryDue) error {
	about := d.aboutRun
	if x.Trigger != nil {
		about = d.aboutTrigger
	}
	s, m, err := about(ctx, name, x)
	if err != nil {
		return err
	}
	body, err := protocol.CanonicalJSON(m)
	if err != nil {
		return err
	}
	w, err := d.way(s)
	if err != nil {
		return err
	}
	return w.send(ctx, m, body)
}

// aboutRun is the notification of an event of a run, and the sink that it goes to.
func (d *Deliverer) aboutRun(ctx context.Context, name string, x protocol.DeliveryDue) (s protocol.Sink, m *Message, err error) {
	st, err := d.Engine.State(ctx, x.Run)
	if errors.Is(err, protocol.ErrUnknownRun) || errors.Is(err, protocol.ErrRunDeleted) {
		return s, nil, errGone
	}
	if err != nil {
		return s, nil, err
	}
	// A store from elsewhere may hold the journal of a sink too.
	switch err := d.Engine.Own(ctx, x.Run); {
	case errors.Is(err, protocol.ErrForeign), errors.Is(err, protocol.ErrRolledBack):
		return s, nil, errGone
	case err != nil:
		return s, nil, err
	}
	s, ok, err := d.sinkFor(name, st)
	if err == nil && !ok {
		err = errors.New("the config, or the workflow, no longer names the sink for this run, or is not trusted with it")
	}
	if err != nil {
		return s, nil, err
	}
	m, err = message(ctx, d.Engine, st, s, name, x)
	return s, m, err
}

// Flush delivers what a run of this process has come to, in front of its user, until ctx ends; what fails is not
// attempted again. It counts what is left for another process. Where one delivers to a sink already, it is left to that.
func (d *Deliverer) Flush(ctx context.Context, run protocol.RunID) (left int, err error) {
	quiet := context.WithoutCancel(ctx)
	st, err := d.Engine.State(quiet, run)
	if err != nil {
		return 0, err
	}
	var names []string
	for _, c := range d.Sinks {
		names = append(names, c.Journal)
	}
	for _, s := range st.Program().Workflow.Notify {
		names = append(names, SinkOf(st.Program().Workflow.Name, s.Name))
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	for _, name := range names {
		sink, ok, failed := d.sinkFor(name, st)
		if failed != nil || !ok {
			err = cmp.Or(err, failed)
			continue
		}
		work.Go(func() {
			n, failed := d.flush(ctx, name, sink, run)
			mu.Lock()
			defer mu.Unlock()
			left += n
			err = cmp.Or(err, failed)
		})
	}
	work.Wait()
	return left, err
}

// flushLook is how often a process that waits for another one to deliver looks at what that has done.
const flushLook = 50 * time.Millisecond

func (d *Deliverer) flush(ctx context.Context, name string, s protocol.Sink, run protocol.RunID) (left int, err error) {
	quiet := context.WithoutCancel(ctx)
	if err := Open(quiet, d.Store, d.now(), []string{name}); err != nil {
		return 0, err
	}
	for {
		unlock, ok, err := d.Store.LockSink(ctx, name)
		if err != nil {
			return 0, err
		}
		if ok {
			left, err := d.flushLocked(ctx, name, run)
			return left, errors.Join(err, unlock())
		}
		j, err := openJournal(quiet, d.Store, name)
		if err != nil {
			return 0, err
		}
		x, err := d.look(quiet, run, j.st.Cursor(run))
		if err != nil {
			return 0, err
		}
		left = j.st.waits(run)
		for _, c := range x.found {
			if s.Wants(c.On) {
				left++
			}
		}
		if left == 0 || !pause(ctx, flushLook) {
			return left, nil
		}
	}
}

// flushLocked delivers by itself: the caller has the lock of the sink.
func (d *Deliverer) flushLocked(ctx context.Context, name string, run protocol.RunID) (left int, err error) {
	quiet := context.WithoutCancel(ctx)
	j, err := openJournal(quiet, d.Store, name)
	if err != nil {
		return 0, err
	}
	x, err := d.look(quiet, run, j.st.Cursor(run))
	if err == nil {
		err = d.add(quiet, j, []seen{x})
	}
	for err == nil && ctx.Err() == nil {
		x, _ := j.st.TakeOf(run, d.now().UnixMicro())
		if x == nil {
			break // nothing is left, or it failed: the user does not wait for another attempt
		}
		result := d.attempt(ctx, name, *x, j.st.age(x, d.now().UnixMicro()), j.st.overtaken(x))
		if result == nil {
			break
		}
		err = j.append(quiet, d.now(), func(*State) []cas.Draft { return []cas.Draft{{Data: result}} })
	}
	if err == nil {
		err = j.append(quiet, d.now(), func(*State) []cas.Draft { return j.passing(1) })
	}
	return j.st.waits(run), errors.Join(err, j.keep(quiet, snapshotEvery))
}

// pause lets time pass; it is false, at once, where ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
