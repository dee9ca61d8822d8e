package cas

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// batchTime is how long the store is held while others queue.
const batchTime = 5 * time.Millisecond

// hold queues for the store as other processes do.
func (d *storeEvidence) hold(ctx context.Context) (err error) {
	d.turn, d.lock, err = queueFor(ctx, d.dir, false, d.patience)
	d.since = time.Now()
	return err
}

// queueFor goes through the turnstile of a store without opening it. turn is open, not held;
// both files are nil in a directory without locks, which no process writes.
func queueFor(ctx context.Context, dir string, exclusive bool, patience time.Duration) (turn, lock *os.File, err error) {
	type got struct {
		turn, lock *os.File
		err        error
	}
	arrived, left := make(chan got), make(chan struct{})
	go func() {
		var g got
		g.turn, g.lock, g.err = passTurnstile(dir, exclusive, left)
		select {
		case arrived <- g:
		case <-left:
			closeAll(g.turn, g.lock)
		}
	}()
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case g := <-arrived:
		return g.turn, g.lock, g.err
	case <-ctx.Done():
		close(left)
		return nil, nil, context.Cause(ctx)
	case <-wait.C:
		close(left)
		return nil, nil, (&gate{dir: dir}).busy(patience)
	}
}

func passTurnstile(dir string, exclusive bool, left <-chan struct{}) (turn, lock *os.File, err error) {
	turn, err = openLock(filepath.Join(dir, fileTurn), true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, classify(err)
	}
	if err = lockWait(turn, true); err == nil {
		defer unlock(turn)
		select {
		case <-left:
			return turn, nil, nil
		default:
		}
		lock, err = openLock(filepath.Join(dir, fileLock), true)
		if errors.Is(err, fs.ErrNotExist) {
			return turn, nil, nil
		}
		if err == nil {
			err = lockWait(lock, exclusive)
		}
	}
	if err != nil {
		closeAll(turn, lock)
		return nil, nil, classify(err)
	}
	return turn, lock, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // read only
		}
	}
}

// pause lets others in when they queue and this batch has lasted long enough. It reports
// whether it did: pages read before are then out of date.
func (d *storeEvidence) pause(ctx context.Context) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, context.Cause(ctx)
	}
	if d.released {
		if err := d.hold(ctx); err != nil {
			return false, err
		}
		d.released = false
		return true, d.load()
	}
	if d.lock == nil || time.Since(d.since) < batchTime {
		return false, nil
	}
	if free, err := tryLock(d.turn); err != nil || free {
		unlock(d.turn)
		d.since = time.Now()
		return false, nil
	}
	d.release()
	return d.pause(ctx)
}

// release lets the store go until the next pause.
func (d *storeEvidence) release() {
	closeAll(d.turn, d.lock)
	d.turn, d.lock, d.released = nil, nil, true
}
