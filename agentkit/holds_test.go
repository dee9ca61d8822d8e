package agentkit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/ratelimit"
	"wf/protocol"
)

// What is held for longer than a second is journaled, once for all calls that are held at a time; and the visit waits for
// that alone which the journal's writer has not taken yet.
func TestAHoldIsJournaled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := ratelimit.Open(t.TempDir(), "p", "account", ratelimit.Limits{InFlight: 1})
		first, err := a.Ask(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(5*time.Second, func() { first.Done(ratelimit.Result{Sent: true}) })
		var got []protocol.Data
		writer := make(chan struct{}) // of the journal: it is busy until the calls are over
		ctx, h := watched(t.Context(), func(_ context.Context, data ...protocol.Data) error {
			<-writer
			got = append(got, data...)
			return nil
		})
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				g, err := a.Ask(ctx, 1)
				if err != nil {
					t.Error(err)
					return
				}
				g.Done(ratelimit.Result{Sent: true})
			})
		}
		all.Wait()
		close(writer)
		if err := h.join(nil); err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 {
			t.Fatalf("journaled %+v", got)
		}
		if d := cmp.Diff(protocol.Held{Provider: "p", Limit: protocol.HeldByInFlight, Max: 1}, got[0]); d != "" {
			t.Error(d)
		}
		if r, ok := got[1].(protocol.Released); !ok || r.MS < 4000 || r.MS > 5000 || h.held() < 4*time.Second {
			t.Errorf("%+v, %v in all", got[1], h.held())
		}
	})
}

// A journal that cannot be written is why the visit ends; what ended it otherwise counts more.
func TestAHoldThatCannotBeJournaledIsAnError(t *testing.T) {
	broken, why := errors.New("broken"), errors.New("why")
	for _, err := range []error{nil, why} {
		_, h := watched(t.Context(), func(context.Context, ...protocol.Data) error { return broken })
		h.begin(protocol.Held{})()
		if got := h.join(err); !slices.Contains([]error{broken, why}, got) || err != nil && got != why {
			t.Errorf("got %v", got)
		}
	}
}
