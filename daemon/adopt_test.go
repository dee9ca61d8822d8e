package daemon_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/daemon"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

// moody is a store that cannot be read now and then.
type moody struct {
	engine.Store
	never atomic.Bool
}

func (m *moody) mood() error {
	if !m.never.Load() && rand.IntN(24) == 0 {
		return protocol.ErrBusy
	}
	return nil
}

func (m *moody) Head(ctx context.Context, name string) (cas.Head, error) {
	if err := m.mood(); err != nil {
		return cas.Head{}, err
	}
	return m.Store.Head(ctx, name)
}

func (m *moody) Tip(ctx context.Context, run protocol.RunID) (protocol.Link, protocol.Seq, error) {
	if err := m.mood(); err != nil {
		return protocol.Link{}, 0, err
	}
	return m.Store.Tip(ctx, run)
}

func (m *moody) Newest(ctx context.Context) ([]cas.Head, error) {
	if err := m.mood(); err != nil {
		return nil, err
	}
	return m.Store.Newest(ctx)
}

func (m *moody) Moved() func(context.Context) ([]string, bool, error) {
	moved := m.Store.Moved()
	return func(ctx context.Context) ([]string, bool, error) {
		if err := m.mood(); err != nil {
			return nil, false, err
		}
		return moved(ctx)
	}
}

// A supervisor takes up what another process leaves waiting, or answers, whatever moves meanwhile, and although its store cannot be
// read now and then: each run comes to its end, and of one that was deleted nothing is kept.
func TestASupervisorMissesNoRunOfAnotherProcess(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	questions, over := make(chan protocol.RunID, 1000), make(chan protocol.RunID, 1000)
	process := func() (*cas.Store, *engine.Engine) {
		s, err := cas.Open(t.Context(), dir, cas.Options{Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s, &engine.Engine{Store: s, Version: "test", Patience: -1,
			Performers: map[protocol.Action]roles.Performer{protocol.ActAsk: roles.Ask{}, protocol.ActWait: roles.Wait{}, protocol.ActSet: roles.Set{}},
			Watch: func(u api.Update) {
				switch d := u.Data.(type) {
				case protocol.WaitingFor:
					if d.Kind == protocol.WaitQuestion {
						questions <- u.Run
					}
				case protocol.Finished:
					over <- u.Run
				}
			}}
	}
	here, mine := process()
	_, other := process()
	m := &moody{Store: here}
	k := daemon.NewSupervisor(m, mine, slog.New(slog.DiscardHandler))
	k.Start()
	t.Cleanup(k.Close)
	var programs []*lang.Program
	sources := []string{askYAML, "wf: 1\nname: timer\nroles: {a: {wait: 1s}}\n", "wf: 1\nname: twice\nroles: {a: {ask: One?}, b: {ask: Two?}}\nedges: [{from: START, to: a}, {from: a, to: b}, {from: b, to: END}]\n"}
	for _, yaml := range sources {
		p, diags := lang.Load([]byte(yaml), lang.Options{File: "test.yaml"})
		if p == nil {
			t.Fatal(diags)
		}
		programs = append(programs, p)
	}
	const runs = 24
	ctx := t.Context()
	for range runs {
		n := dice.IntN(len(programs))
		run, _, err := other.Begin(ctx, engine.Launch{Program: programs[n], Source: []byte(sources[n]), Inputs: protocol.JSON("{}"), Workspace: dir})
		if err == nil {
			_, err = other.Drive(ctx, run, engine.DriveOptions{By: "the other process"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ended := map[protocol.RunID]bool{}
	patience := time.After(2 * time.Minute)
	for len(ended) < runs {
		select {
		case run := <-questions:
			e := []*engine.Engine{mine, other}[dice.IntN(2)]
			if _, err := e.Answer(ctx, run, engine.Reply{Text: "yes"}); err != nil {
				t.Errorf("answer %s: %v", run, err)
			}
			if dice.IntN(3) == 0 {
				k.Keep(run, engine.DriveOptions{By: "a request"})
			}
		case run := <-over:
			ended[run] = true
		case <-patience:
			t.Fatalf("%d of %d runs have ended", len(ended), runs)
		}
	}
	for run := range ended {
		if _, _, err := other.Delete(ctx, run, engine.Burial{By: "ada"}); err != nil {
			t.Error(err)
		}
	}
	m.never.Store(true)
	for k.Kept() > 0 {
		select {
		case <-patience:
			t.Fatalf("%d runs are kept that were deleted", k.Kept())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
