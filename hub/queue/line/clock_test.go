package line_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"wf/hub/queue"
	"wf/hub/queue/line"
)

// fast is a Keeper over nothing, of a process whose clock goes faster than that of turns.
type fast struct {
	began         time.Time
	at, heard     time.Time // of the last turn, by either clock
	number, epoch uint64
}

func (k *fast) Now() time.Time { return k.at.Add(time.Since(k.heard)) }

func (k *fast) Begin(context.Context, bool) (line.Turn, error) {
	k.heard = time.Now()
	past := k.heard.Sub(k.began)
	k.at = k.began.Add(past - past/1000)
	return fastTurn{k}, nil
}

func (k *fast) Box(context.Context, uint64) ([]byte, error) { return nil, nil }

type fastTurn struct{ k *fast }

func (t fastTurn) Now() time.Time               { return t.k.at }
func (t fastTurn) News() ([]line.Record, bool)  { return nil, false }
func (t fastTurn) Last() (number, epoch uint64) { return t.k.number, t.k.epoch }
func (t fastTurn) End()                         {}

func (t fastTurn) Write(c line.Change) error {
	for _, r := range c.Jobs {
		t.k.number, t.k.epoch = max(t.k.number, r.Number), max(t.k.epoch, r.Epoch)
	}
	return nil
}

// A job whose time has come by the clock of this process, and not yet by that of turns, is leased when it has come by both.
func TestAClockThatGoesFastLosesNoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		q := line.New(&fast{began: now, at: now, heard: now})
		defer q.Close()
		ctx := t.Context()
		sealed := queue.Sealed{Box: []byte("box"), Keys: []queue.Key{{Worker: "w", To: "k", Sealed: []byte("key")}}}
		if _, _, err := q.Submit(ctx, queue.Job{ID: "job", Workflow: "w"}, sealed); err != nil {
			t.Fatal(err)
		}
		for n, rest := range []time.Duration{time.Minute, time.Hour} { // put back with a delay, and a lease that lapsed
			l, err := q.Lease(ctx, "w", nil, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				if err := l.Retry(ctx, rest, "later"); err != nil {
					t.Fatal(err)
				}
			}
			due := time.Now().Add(rest)
			if l, err = q.Lease(ctx, "w", nil, time.Hour); err != nil {
				t.Fatal(err)
			}
			if late := time.Since(due); late < 0 || late > rest/500 {
				t.Errorf("leased %v after its time, which came after %v", late, rest)
			}
			if err := l.Retry(ctx, 0, "again"); err != nil {
				t.Fatal(err)
			}
		}
	})
}
