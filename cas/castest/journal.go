package castest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/protocol"
)

// Append adds n events to a journal, at most 19 in a commit.
func Append(t *testing.T, j *cas.Journal, n int) []protocol.Entry {
	t.Helper()
	var out []protocol.Entry
	for len(out) < n {
		var drafts []cas.Draft
		for range min(1+len(out)%19, n-len(out)) {
			k := len(out) + len(drafts)
			drafts = append(drafts, cas.Draft{Step: fmt.Sprintf("coder#%d", k/3), Data: protocol.TextSaid{Content: protocol.NewText(fmt.Sprint("text ", k))}})
		}
		got, err := j.Append(t.Context(), Now+int64(len(out)), drafts, []cas.Block{cas.Raw(fmt.Append(nil, "payload ", len(out)))})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, got...)
	}
	return out
}

// Events reads a journal to its end.
func Events(ctx context.Context, s protocol.Source, run protocol.RunID, from protocol.Seq) ([]protocol.Entry, error) {
	var out []protocol.Entry
	for e, err := range s.After(ctx, run, from) {
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
	return out, nil
}

// Has reports whether a block is stored and undamaged.
func Has(ctx context.Context, s protocol.Blocks, l protocol.Link) (bool, error) {
	_, err := s.Block(ctx, l)
	if errors.Is(err, protocol.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func journal(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	j := must(s.Journal(ctx, "r1"))(t)
	want := Append(t, j, 700)
	for _, from := range []protocol.Seq{0, 1, 31, 32, 33, 63, 64, 255, 256, 640, 698, 699, 700} {
		got := must(Events(ctx, s, "r1", from))(t)
		if !reflect.DeepEqual(want[from:], append([]protocol.Entry{}, got...)) { // cmp takes seconds for as many
			t.Fatalf("after %d (-want +have):\n%s", from, cmp.Diff(want[from:], got, sameLink))
		}
	}
	h := must(s.Head(ctx, "run/r1"))(t)
	if h.Link != want[699].CID || h.Seq != 700 || h.TS != want[699].TS {
		t.Errorf("head %+v, want %s at 700", h, want[699].CID)
	}
	for e, err := range s.After(ctx, "r1", 0) { // leaving early is fine
		if err != nil || e.Seq != 1 {
			t.Error(e.Seq, err)
		}
		break
	}
}

func longTexts(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	j := must(s.Journal(ctx, "r1"))(t)
	for _, n := range []int{0, 1, protocol.InlineMax, protocol.InlineMax + 1, 100 << 10, protocol.ChunkSize + 5} {
		said := strings.Repeat("é", n/2) + strings.Repeat("x", n%2)
		draft := protocol.TextSaid{Content: protocol.NewText(said)}
		got := must(j.Append(ctx, Now, []cas.Draft{{Step: "coder#1", Data: draft}}, nil))(t)
		d := must(cas.DecodeData[protocol.TextSaid](&got[0].Event))(t)
		if d.Content.Link.Defined() != (n > protocol.InlineMax) {
			t.Errorf("%d bytes: link %v", n, d.Content.Link)
		}
		back := d.Content.S
		if d.Content.Link.Defined() {
			back = string(must(protocol.ReadPayload(ctx, s, d.Content.Link))(t))
		}
		if back != said {
			t.Errorf("%d bytes: %d came back", n, len(back))
		}
		if draft.Content.Link.Defined() {
			t.Error("the caller's draft was changed")
		}
	}
}

func catchup(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	a, b := must(s.Journal(ctx, "r1"))(t), must(s.Journal(ctx, "r1"))(t)
	Append(t, a, 5)
	draft := []cas.Draft{{Data: protocol.ResumedBy{By: "someone"}}}
	if _, err := b.Append(ctx, Now, draft, nil); !errors.Is(err, protocol.ErrHeadMoved) {
		t.Fatalf("want head_moved, have %v", err)
	}
	got := must(b.Catchup(ctx))(t)
	if len(got) != 5 || got[0].Seq != 1 {
		t.Fatalf("caught up with %d events", len(got))
	}
	if more := must(b.Append(ctx, Now, draft, nil))(t); more[0].Seq != 6 || more[0].Prev != got[4].CID {
		t.Errorf("then appended %+v", more[0])
	}
	if again := must(b.Catchup(ctx))(t); len(again) > 0 {
		t.Errorf("own events came back: %d", len(again))
	}
}

func staged(t *testing.T, open func() Store, moves func(*testing.T, Store) int64) {
	s, ctx := open(), t.Context()
	a, b := must(s.Journal(ctx, "r1"))(t), must(s.Journal(ctx, "r1"))(t)
	stage := func(j *cas.Journal, n int) *cas.Staged {
		var drafts []cas.Draft
		for i := range n {
			drafts = append(drafts, cas.Draft{Step: "coder#1", Data: protocol.TextSaid{Content: protocol.NewText(strings.Repeat(fmt.Sprint(i), 600*i))}})
		}
		same := cas.Raw([]byte("in every batch")) // is stored once
		return must(j.Stage(Now, drafts, []cas.Block{same, cas.Raw(fmt.Append(nil, "payload ", n))}))(t)
	}
	one, two, three := stage(a, 3), stage(a, 4), stage(a, 1)
	if head, seq := a.Head(); head.Defined() || seq > 0 {
		t.Errorf("staged events count as written: %d", seq)
	}
	got := must(a.Commit(ctx, one))(t)
	got = append(got, must(a.Commit(ctx, two))(t)...)
	got = append(got, must(a.Commit(ctx, three))(t)...)
	got = append(got, Append(t, a, 2)...)
	if d := cmp.Diff(got, must(Events(ctx, s, "r1", 0))(t), sameLink); d != "" {
		t.Errorf("read back (-committed +have):\n%s", d)
	}
	if len(got) != 10 || got[9].Seq != 10 {
		t.Errorf("committed %d events", len(got))
	}
	if n := moves(t, s); n != 5 {
		t.Errorf("%d moves of the head, want one a commit: 5", n)
	}

	late, later := stage(b, 1), stage(b, 2)
	for _, st := range []*cas.Staged{late, later} {
		if _, err := b.Commit(ctx, st); !errors.Is(err, protocol.ErrHeadMoved) {
			t.Fatalf("want head_moved, have %v", err)
		}
	}
	if len(must(b.Catchup(ctx))(t)) != 10 {
		t.Error("what was staged in vain counts")
	}
	if more := must(b.Commit(ctx, stage(b, 1)))(t); more[0].Seq != 11 || more[0].Prev != got[9].CID {
		t.Errorf("then committed %+v", more[0])
	}
}

func fork(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	j := must(s.Journal(ctx, "r1"))(t)
	base := Append(t, j, 100)
	forked := []cas.Draft{{Data: protocol.Forked{Base: base[69].CID, By: "someone"}}}
	f := must(j.Fork(ctx, Now, "r2", base[69], forked, nil, nil))(t)
	own := Append(t, f, 40)
	got := must(Events(ctx, s, "r2", 0))(t)
	if len(got) != 70+1+40 {
		t.Fatalf("the fork has %d events", len(got))
	}
	if d := cmp.Diff(base[:70], got[:70], sameLink); d != "" {
		t.Errorf("shared events (-want +have):\n%s", d)
	}
	if got[70].Type != protocol.EvForked || got[70].Prev != base[69].CID {
		t.Errorf("event 71: %+v", got[70])
	}
	if d := cmp.Diff(own, got[71:], sameLink); d != "" {
		t.Errorf("own events (-want +have):\n%s", d)
	}
	if n := len(must(Events(ctx, s, "r1", 0))(t)); n != 100 {
		t.Errorf("the original now has %d events", n)
	}
	if _, err := j.Fork(ctx, Now, "r2", base[69], forked, nil, nil); !errors.Is(err, protocol.ErrHeadMoved) {
		t.Errorf("forking into a run that exists: %v", err)
	}
}

func forkOfFork(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	j := must(s.Journal(ctx, "r0"))(t)
	events := Append(t, j, 90)
	for i, at := range []int{80, 130, 40} { // the last one lies before the forks themselves
		run := protocol.RunID(fmt.Sprint("r", i+1))
		j = must(j.Fork(ctx, Now, run, events[at-1], []cas.Draft{{Data: protocol.Forked{Base: events[at-1].CID}}}, nil, nil))(t)
		Append(t, j, 70)
		events = must(Events(ctx, s, run, 0))(t)
		if len(events) != at+71 {
			t.Fatalf("%s has %d events, want %d", run, len(events), at+71)
		}
	}
}

func cursors(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	Append(t, must(s.Journal(ctx, "r1"))(t), 4)
	for _, c := range []struct {
		run  protocol.RunID
		from protocol.Seq
		want error
	}{{"r1", 5, protocol.ErrFutureCursor}, {"r1", -1, protocol.ErrBadCursor}, {"unknown", 0, protocol.ErrUnknownRun}} {
		if _, err := Events(ctx, s, c.run, c.from); !errors.Is(err, c.want) {
			t.Errorf("%s after %d: %v", c.run, c.from, err)
		}
	}
	if got := must(Events(ctx, s, "r1", 4))(t); len(got) > 0 {
		t.Errorf("%d events after the last", len(got))
	}
}
