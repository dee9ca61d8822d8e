package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"wf/protocol"
)

// The timeout of an attempt pauses while it is held, however often.
func TestATimeoutPausesWhileAnAttemptIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		now := func() int64 { return time.Now().UnixMicro() }
		ctx, w := limited(t.Context(), 10*time.Second, now)
		defer w.stop()
		emit := w.watch(func(context.Context, ...protocol.Data) error { return nil })
		for range 3 {
			time.Sleep(3 * time.Second)
			if err := emit(ctx, protocol.Held{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if err := emit(ctx, protocol.Released{}, protocol.Released{}); err != nil {
				t.Fatal(err)
			}
		}
		<-ctx.Done()
		if d := time.Since(began); d != 3*time.Hour+10*time.Second || !errors.Is(context.Cause(ctx), errTimeout) {
			t.Errorf("ended after %v by %v", d, context.Cause(ctx))
		}
		if held := w.heldFor(); held != 3*time.Hour.Microseconds() {
			t.Errorf("held for %d µs", held)
		}
	})
}
