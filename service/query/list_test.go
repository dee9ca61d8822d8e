package query

import (
	"context"
	"errors"
	"iter"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// failing is a store in which a run is listed, and not read.
type failing struct {
	engine.Store
	err error
}

func (f failing) Newest(context.Context) ([]cas.Head, error) {
	return []cas.Head{{Name: protocol.RunHead("R"), Seq: 1}}, nil
}

func (f failing) After(context.Context, protocol.RunID, protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) { yield(protocol.Entry{}, f.err) }
}

// A damaged run hides no other; where the store fails, or its database is lost, there is no list.
func TestAListOfAStoreThatFails(t *testing.T) {
	s, err := cas.Open(t.Context(), t.TempDir(), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		err  *protocol.Error
		list bool
	}{{protocol.ErrCorrupt, true}, {protocol.ErrStore, false}, {protocol.ErrBusy, false}, {protocol.ErrUnreachable, false}} {
		_, unread, err := Runs(t.Context(), &engine.Engine{Store: failing{s, c.err}}, api.Query{})
		if c.list && (err != nil || len(unread) != 1) || !c.list && !errors.Is(err, c.err) {
			t.Errorf("%s: %v, unread %v", c.err.Code, err, unread)
		}
	}
}
