package pgstore_test

import (
	"testing"
	"time"

	"wf/cas"
	"wf/pgstore"
	"wf/protocol"
)

// A process that waits for runs that are due hears of one that another process has made so long before it would look by itself.
func TestARunThatIsDueIsHeardOf(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := must(pgstore.Open(ctx, dsn, pgstore.Options{Poll: time.Hour}))(t)
	t.Cleanup(func() { s.Close() })
	other := open(t, dsn)
	if err := s.AwaitDue(ctx); err != nil { // it listens from now on
		t.Fatal(err)
	}
	j := beginRun(t, other, cas.Standing{Run: "a", State: protocol.Waiting})
	for _, x := range []cas.Standing{{Run: "a", State: protocol.Running, Due: cas.DueNow}, {Run: "a", State: protocol.Running, Due: cas.DueNow}} {
		move(t, j, x)
		if err := s.AwaitDue(ctx); err != nil {
			t.Fatal(err)
		}
		for len(due(t, s)) == 0 { // the hint may be one from before
			if err := s.AwaitDue(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}
