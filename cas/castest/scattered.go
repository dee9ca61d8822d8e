package castest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/protocol"
)

// scattered compares the events of many journals that are read at once with those that are read one after another, where a store can do that.
func scattered(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	many, ok := s.(cas.Scattered)
	if !ok {
		t.Skip("this store reads them one after another")
	}
	var at []cas.EventAt
	want := map[cas.EventAt]protocol.Entry{}
	all := func(run protocol.RunID, own protocol.Seq) {
		t.Helper()
		for _, e := range must(Events(ctx, s, run, own))(t) {
			x := cas.EventAt{Run: run, Seq: e.Seq}
			at, want[x] = append(at, x), e
		}
	}
	for i := range 3 {
		run := protocol.RunID(fmt.Sprint("r", i))
		j := must(s.Journal(ctx, run))(t)
		Append(t, j, 5)
		var drafts []cas.Draft // several events of one move, short and long ones
		for n := range 7 {
			drafts = append(drafts, cas.Draft{Step: "a#1", Data: protocol.ResumedBy{By: strings.Repeat(fmt.Sprint(run, n), 1+n%2*2000)}})
		}
		events := must(j.Append(ctx, Now, drafts, nil))(t)
		all(run, 0)
		must(j.Fork(ctx, Now, run+"-fork", events[2], []cas.Draft{{Data: protocol.Forked{Base: events[2].CID}}, {Data: protocol.ResumedBy{}}}, nil, nil))(t)
		all(run+"-fork", events[2].Seq)
	}
	none := []cas.EventAt{{Run: "unknown", Seq: 1}, {Run: "r0", Seq: 100}, {Run: "r0", Seq: 0}, {Run: "r1-fork", Seq: 2}}
	at = append(append(at[:7:7], none...), at[7:]...)
	got := must(many.EventsAt(ctx, at))(t)
	if len(got) != len(at) {
		t.Fatalf("%d events at %d places", len(got), len(at))
	}
	for i, x := range at {
		e := want[x]
		if x.Run == "r1-fork" && x.Seq == 2 && got[i].Raw != nil { // it shares that of r1
			e = want[cas.EventAt{Run: "r1", Seq: 2}]
		}
		if d := cmp.Diff(e, got[i], sameLink); d != "" {
			t.Errorf("event %d of %s (-want +have):\n%s", x.Seq, x.Run, d)
		}
	}
	if got := must(many.EventsAt(ctx, nil))(t); len(got) > 0 {
		t.Errorf("%d events at no place", len(got))
	}
}
