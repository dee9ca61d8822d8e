package cas

import (
	"context"
	"time"
)

// batchTime is how long the store is held while others queue.
const batchTime = 5 * time.Millisecond

// hold queues for the store as other processes do, and reads its file as it is then.
func (d *storeEvidence) hold(ctx context.Context) (err error) {
	if d.holding, err = d.gate.enter(ctx, false); err != nil {
		return err
	}
	d.since = time.Now()
	return classify(d.load())
}

// pause lets others in when they queue and this batch has lasted long enough. It reports
// whether it did: pages read before are then out of date.
func (d *storeEvidence) pause(ctx context.Context) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, context.Cause(ctx)
	}
	if d.holding != nil && time.Since(d.since) < batchTime {
		return false, nil
	}
	if d.holding != nil && !d.gate.queued() {
		d.since = time.Now()
		return false, nil
	}
	d.release()
	return true, d.hold(ctx)
}

// release lets the store go until the next pause.
func (d *storeEvidence) release() {
	if d.holding != nil {
		d.gate.leave(d.holding, true)
		d.holding = nil
	}
}
