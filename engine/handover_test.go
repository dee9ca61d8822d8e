package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// opens is an agent that opens something while it is prepared.
type opens struct {
	takes   bool // it goes on with that
	prepare func(protocol.Turn) error
	perform func(ctx context.Context, turn protocol.Turn) error

	mu    sync.Mutex
	open  map[string]bool // by step, what is open
	taken []string
	total int
}

// opened is what a visit opened.
type opened struct {
	*opens
	step string
}

func (o opened) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.open[o.step] {
		return fmt.Errorf("%s was closed twice", o.step)
	}
	delete(o.open, o.step)
	return nil
}

func (o *opens) Prepare(ctx context.Context, turn protocol.Turn) (roles.Preparation, error) {
	if o.prepare != nil {
		if err := o.prepare(turn); err != nil {
			return roles.Preparation{}, err
		}
	}
	step := turn.Step.String()
	o.mu.Lock()
	o.open[step], o.total = true, o.total+1
	o.mu.Unlock()
	if c := (opened{o, step}); !roles.HandoverOf(ctx).Put(c) {
		return roles.Preparation{}, c.Close()
	}
	return roles.Preparation{}, nil
}

func (o *opens) Perform(ctx context.Context, turn protocol.Turn, _ roles.Emit) (c protocol.Conclusion, err error) {
	if o.takes {
		if c, ok := roles.HandoverOf(ctx).Take().(opened); ok {
			defer func() { err = errors.Join(err, c.Close()) }()
			o.mu.Lock()
			if o.taken = append(o.taken, c.step); c.step != turn.Step.String() {
				err = fmt.Errorf("%s is given what %s opened", turn.Step, c.step)
			}
			o.mu.Unlock()
		}
	}
	if err == nil && o.perform != nil {
		err = o.perform(ctx, turn)
	}
	return protocol.Conclusion{Text: new("done")}, err
}

var _ io.Closer = opened{}

// What is opened while a visit is prepared is what its first attempt goes on with, and is closed in the end whatever becomes
// of the visit.
func TestWhatAPreparationOpensIsHandedToTheVisitOrClosed(t *testing.T) {
	const one = "wf: 1\nname: one\nroles: {a: {prompt: You work., model: x/y, timeout: 1h%s}}\n"
	const fan = "wf: 1\nname: fan\nroles: {a: {prompt: You work., model: x/y%s}}\nedges: [{from: START, to: a, for_each: \"0..19\"}, {from: a, to: END}]\n"
	again := &protocol.Failure{Class: "server_error", ErrorInfo: protocol.ErrorInfo{Code: "no", Message: "no", Phase: "prompt"}}
	for name, c := range map[string]struct {
		yaml   string
		o      *opens
		first  bool // the drive is ended as the first visit is prepared
		moved  bool // another process writes to the run then
		taken  int
		total  int // opened; 0 is any number
		status protocol.RunStatus
	}{
		"it is taken":        {yaml: fmt.Sprintf(one, ""), o: &opens{takes: true}, taken: 1, status: done},
		"it is not taken":    {yaml: fmt.Sprintf(one, ""), o: &opens{}, status: done},
		"for each visit":     {yaml: twiceYAML, o: &opens{takes: true}, taken: 2, status: done},
		"for each item":      {yaml: fmt.Sprintf(fan, ""), o: &opens{takes: true}, taken: 20, status: done},
		"it waits its turn":  {yaml: fmt.Sprintf(fan, ", concurrency: {group: g, max: 1}"), o: &opens{takes: true}, taken: 1, status: done},
		"it is interrupted":  {yaml: fmt.Sprintf(one, ""), o: &opens{takes: true}, first: true, status: protocol.Suspended},
		"it is decided anew": {yaml: fmt.Sprintf(one, ""), o: &opens{takes: true}, moved: true, taken: 1, total: 2, status: done},
		"it panics":          {yaml: fmt.Sprintf(one, ""), o: &opens{perform: func(context.Context, protocol.Turn) error { panic("no") }}, status: protocol.Suspended},
		"the second attempt": {yaml: fmt.Sprintf(one, ", retry: {attempts: 2, delay: 1ms}"), o: &opens{takes: true, perform: func(context.Context, protocol.Turn) error { return again }}, taken: 1, status: protocol.Suspended},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c.o.open = map[string]bool{}
			b.e.Performers[protocol.ActPrompt] = c.o
			id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: b.load(c.yaml), Inputs: protocol.JSON("{}"), Workspace: b.dir})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if c.first {
				c.o.prepare = func(protocol.Turn) error { stop(); return nil }
			}
			if c.moved {
				c.o.prepare = func(protocol.Turn) error { c.o.prepare = nil; return b.e.Message(ctx, id, "sensor", "hot") }
			}
			st, err := b.e.Drive(ctx, id, engine.DriveOptions{})
			if (err != nil) != c.first || st.Status() != c.status {
				t.Fatalf("the run is %s, %v", st.Status(), err)
			}
			if len(c.o.taken) != c.taken || c.o.total == 0 || c.total > 0 && c.o.total != c.total || len(c.o.open) > 0 {
				t.Errorf("taken by %q of %d, left open %v", c.o.taken, c.o.total, c.o.open)
			}
		})
	}
}

// What a visit that is not performed had opened raises its alarm all the same.
func TestWhatIsClosedUntakenRaisesItsAlarm(t *testing.T) {
	b := newBench(t)
	b.e.Performers[protocol.ActPrompt] = alarming{}
	if _, v := b.run("wf: 1\nname: one\nroles: {a: {prompt: You work., model: x/y}}\n", nil); v.Code != protocol.ErrLeft.Code {
		t.Errorf("the run is %s: %q", v.Status, v.Code)
	}
}

// Nor does a visit that panics keep it quiet.
func TestWhatIsClosedUntakenRaisesItsAlarmBesideAPanic(t *testing.T) {
	b := newBench(t)
	b.e.Performers[protocol.ActPrompt] = panicking{}
	if _, v := b.run("wf: 1\nname: one\nroles: {a: {prompt: You work., model: x/y}}\n", nil); v.Code != protocol.ErrLeft.Code || !strings.Contains(v.Reason, "panic: no") {
		t.Errorf("the run is %s: %q %q", v.Status, v.Code, v.Reason)
	}
}

type panicking struct{ alarming }

func (panicking) Perform(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error) {
	panic("no")
}

type alarming struct{}

func (alarming) Close() error { return protocol.ErrLeft }

func (a alarming) Prepare(ctx context.Context, _ protocol.Turn) (roles.Preparation, error) {
	if !roles.HandoverOf(ctx).Put(a) {
		return roles.Preparation{}, errors.New("nothing is handed over")
	}
	return roles.Preparation{}, nil
}

func (alarming) Perform(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error) {
	return protocol.Conclusion{Text: new("done")}, nil
}

// F-117: the journal says what a visit waited for when its time was over, and its record, which is the same on every machine,
// does not.
func TestATimeoutSaysWhatWasWaitedFor(t *testing.T) {
	b := newBench(t)
	b.e.Performers[protocol.ActPrompt] = &opens{open: map[string]bool{}, perform: func(ctx context.Context, _ protocol.Turn) error {
		<-ctx.Done()
		return fmt.Errorf("the server \xff had not answered for 4ms: %w", ctx.Err())
	}}
	_, v := b.run("wf: 1\nname: one\nroles: {a: {prompt: You work., model: x/y, timeout: 10ms}}\n", nil)
	if got := v.Steps[0].Error; got == nil || got.Message != "timed out after 10ms" {
		t.Errorf("the record says %+v", got)
	}
	if got := v.Steps[0].Attempts[0].Error; got == nil || got.Message != "timed out after 10ms: the server \ufffd had not answered for 4ms" {
		t.Errorf("the journal says %+v", got)
	}
}
