package words

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/store"
)

// together is a store that reads many blocks and events at once, and counts how often it is asked.
type together struct {
	store.Store
	most        int           // blocks that it gives at once
	part        bool          // it leaves out each third event
	gone        protocol.Link // is not there
	asks, alone int
}

func (s *together) Blocks(ctx context.Context, links []protocol.Link) (out []cas.Block, err error) {
	s.asks++
	for _, l := range links {
		if data, err := s.Store.Block(ctx, l); err == nil && l != s.gone && len(out) < s.most {
			out = append(out, cas.Block{Link: l, Data: data})
		}
	}
	return out, nil
}

func (s *together) EventsAt(ctx context.Context, at []cas.EventAt) ([]protocol.Entry, error) {
	s.asks++
	out := make([]protocol.Entry, len(at))
	for i, x := range at {
		if s.part && i%3 == 0 {
			continue
		}
		for e, err := range s.Store.After(ctx, x.Run, x.Seq-1) {
			if err != nil {
				return nil, err
			}
			out[i] = e
			break
		}
	}
	return out, nil
}

func (s *together) Block(ctx context.Context, l protocol.Link) ([]byte, error) {
	s.alone++
	if l == s.gone {
		return nil, protocol.ErrNotFound
	}
	return s.Store.Block(ctx, l)
}

func (s *together) After(ctx context.Context, run protocol.RunID, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	s.alone++
	return s.Store.After(ctx, run, from)
}

// The excerpts of a page are those that each run has for itself, and however many runs there are, the store is asked as often.
func TestExcerptsOfAPageAreReadTogether(t *testing.T) {
	p := newPlace(t, t.TempDir())
	p.e.Performers[protocol.ActRun] = speaker(func(turn protocol.Turn) string {
		return "The zeppelin of " + turn.EdgePrompt + strings.Repeat(" and on", 400) // in a block of its own
	})
	var runs []protocol.RunID
	for i := range 12 {
		run := p.begin(talk, fmt.Sprint("zeppelin", i))
		p.answer(run, "zeppelin, yes")
		runs = append(runs, run)
		if i%4 == 0 {
			fork, err := p.e.Fork(t.Context(), run, engine.ForkOptions{At: 6, By: "carl"})
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, fork)
		}
	}
	p.catchUp()
	runs = append(runs, "unknown")
	f := p.find("zeppelin*")
	of := func(runs []protocol.RunID) [][]api.Hit {
		t.Helper()
		out, err := f.HitsOf(t.Context(), runs)
		if err != nil || len(out) != len(runs) {
			t.Fatalf("%d of %d, %v", len(out), len(runs), err)
		}
		return out
	}
	want := of(runs)
	for i, hits := range want {
		if (len(hits) == hitsMax) != (runs[i] != "unknown") {
			t.Fatalf("run %s has %+v", runs[i], hits)
		}
	}
	if len(of(nil)) > 0 {
		t.Error("excerpts of no run")
	}
	asks := 0
	for _, c := range []struct {
		name string
		s    together
		runs int
	}{
		{"one run", together{most: 1000}, 1},
		{"all runs", together{most: 1000}, len(runs)},
		{"few blocks at once", together{most: 2}, len(runs)},
		{"not all events", together{most: 1000, part: true}, len(runs)},
	} {
		s := c.s
		s.Store = p.s
		p.x.store = &s
		if d := cmp.Diff(want[:c.runs], of(runs[:c.runs])); d != "" {
			t.Errorf("%s (-want +have):\n%s", c.name, d)
		}
		switch {
		case c.runs == 1:
			asks = s.asks
		case s.most > 2 && s.asks > asks+2: // a fork has other texts
			t.Errorf("%s: asked %d times, %d for one run", c.name, s.asks, asks)
		}
		if !s.part && s.alone > 0 {
			t.Errorf("%s: %d were read alone", c.name, s.alone)
		}
	}
	// A text that is gone is left out, and what others have is not.
	gone := &together{Store: p.s, most: 1000}
	for e, err := range p.s.After(t.Context(), runs[2], 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == protocol.EvStepCompleted && !gone.gone.Defined() {
			d, err := cas.DecodeData[protocol.StepCompleted](&e.Event)
			if err != nil {
				t.Fatal(err)
			}
			gone.gone = d.Record
		}
	}
	p.x.store = gone
	have := of(runs)
	if len(have[2]) >= hitsMax+1 || gone.alone == 0 {
		t.Errorf("%+v, %d read alone", have[2], gone.alone)
	}
	have[2] = want[2]
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("with a block that is gone (-want +have):\n%s", d)
	}
}
