package engine_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// longIDs is a store that gives long ids, as one that several machines share.
type longIDs struct{ *cas.Store }

func (longIDs) IDLength() int { return cas.LongID }

// A run and its children have ids of the length that the store says, and those of a run that came from another store the
// length of its own.
func TestIDsAreAsLongAsTheStoreSays(t *testing.T) {
	b := newBench(t)
	yaml := parentOf(b)
	short, _ := b.run(yaml, nil)
	b.e.Store = longIDs{b.e.Store.(*cas.Store)}
	long, v := b.run(yaml, nil)
	if len(short) != cas.IDLength || len(long) != cas.LongID || v.Status != protocol.Waiting {
		t.Fatalf("ids %q, %q; status %s", short, long, v.Status)
	}
	for _, run := range []protocol.RunID{short, long} {
		children, err := b.e.Descendants(t.Context(), run)
		if err != nil || len(children) != 1 || len(children[0]) != len(run) {
			t.Errorf("children of %s: %v, %v", run, children, err)
		}
	}
	if id := b.e.RequestRun("one"); len(id) != cas.LongID || !strings.HasPrefix(string(id), string(engine.RequestRun("one"))) {
		t.Errorf("the run of a request is %s", id)
	}
}

// A run that another request has begun under the id of this one is refused, and not taken for its own.
func TestARunOfAnotherRequestIsRefused(t *testing.T) {
	b := newBench(t)
	l := engine.Launch{Program: b.load(gateYAML), Source: []byte(gateYAML), Inputs: protocol.JSON("{}"), Workspace: b.dir, RequestID: "one"}
	run, fresh, err := b.e.Begin(t.Context(), l)
	if err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	if again, fresh, err := b.e.Begin(t.Context(), l); again != run || fresh || err != nil {
		t.Errorf("the same request: %s, %v, %v", again, fresh, err)
	}
	b.e.Store = renamed{b.e.Store, run}
	l.RequestID = "two"
	if other, _, err := b.e.Begin(t.Context(), l); !errors.Is(err, protocol.ErrRequestReused) {
		t.Errorf("another request with the same id: %s, %v", other, err)
	}
}

// renamed is a store in which each run is found under one id.
type renamed struct {
	engine.Store
	run protocol.RunID
}

func (r renamed) After(ctx context.Context, _ protocol.RunID, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return r.Store.After(ctx, r.run, from)
}

func (r renamed) Tip(ctx context.Context, _ protocol.RunID) (protocol.Link, protocol.Seq, error) {
	return r.Store.Tip(ctx, r.run)
}
