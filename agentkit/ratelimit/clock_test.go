package ratelimit

import (
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The clock of the ledger is that of the boot, which counts sleep and that nobody sets; a machine that is put back to an
// earlier state of itself puts it back all the same. Whatever it does, and however the limits of the processes change: a call
// is never sent into a window that is full by the limits of its own process, and none waits for ever.
func TestClocksThatLeapAndLimitsThatChange(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 1))
			var leap atomic.Int64 // µs that the clock was put back
			dir, begun := t.TempDir(), time.Now()
			var mu sync.Mutex
			var sent []time.Duration
			flying, calls := 0, 0
			var all sync.WaitGroup
			for range 4 { // processes, one after the other and beside each other
				lim := Limits{Requests: 5 + chance.IntN(20), InFlight: 3 + chance.IntN(8)}
				l := newLedger(filepath.Join(dir, "account"))
				l.boot = func() (string, error) { return "boot", nil }
				l.now = func() int64 { return time.Now().UnixMicro() - leap.Load() }
				a := &Account{ID: "account", Provider: "p", Limits: lim, ledger: l}
				n, after := 5+chance.IntN(15), time.Duration(chance.Int64N(int64(3*time.Minute)))
				calls += n
				for range n {
					all.Go(func() {
						time.Sleep(after)
						g, err := a.Ask(t.Context(), 10)
						if err != nil {
							t.Error(err)
							return
						}
						g.Sent()
						now := time.Since(begun)
						mu.Lock()
						within := 0
						for _, at := range sent {
							if now-at < Window-late {
								within++
							}
						}
						if flying++; flying > lim.InFlight || within >= lim.Requests {
							t.Errorf("seed %d, %v: sent with %d in flight and %d in the window before, of %+v", seed, now, flying, within, lim)
						}
						sent = append(sent, now)
						mu.Unlock()
						time.Sleep(time.Duration(1+after%7) * 100 * time.Millisecond)
						mu.Lock()
						flying--
						mu.Unlock()
						g.Done(Result{Sent: true, Used: 5})
					})
				}
			}
			stop := make(chan struct{})
			var leaps sync.WaitGroup
			leaps.Go(func() {
				for range 4 {
					select {
					case <-time.After(time.Minute):
						leap.Add(int64(24*time.Hour/time.Microsecond) * int64(chance.IntN(3)))
					case <-stop:
						return
					}
				}
			})
			all.Wait()
			close(stop)
			leaps.Wait()
			synctest.Wait()
			if len(sent) != calls {
				t.Errorf("seed %d: %d of %d calls were sent", seed, len(sent), calls)
			}
			if took := time.Since(begun); took > time.Duration(calls+20)*Window {
				t.Errorf("seed %d: %d calls took %v", seed, calls, took)
			}
		})
	}
}

// A machine that sleeps for a day: its timers stand still meanwhile, and the clock of the boot does not. What waited is sent
// within a second of its waking, and what was sent before fills no window any more.
func TestAfterASleepTheWindowIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		a := asProcess(t.TempDir(), Limits{Requests: 2, InFlight: 5})
		a.ledger.now = func() int64 { return time.Now().UnixMicro() + slept.Load() }
		for range 2 {
			ask(t, a).Done(Result{Sent: true})
		}
		granted := make(chan time.Time, 1)
		go func() {
			ask(t, a).Done(Result{Sent: true})
			granted <- time.Now()
		}()
		time.Sleep(5 * time.Second)
		select {
		case <-granted:
			t.Fatal("a third is sent at once")
		default:
		}
		slept.Add(int64(24 * time.Hour / time.Microsecond))
		woke := time.Now()
		if late := (<-granted).Sub(woke); late > time.Second {
			t.Errorf("sent %v after the machine woke", late)
		}
		synctest.Wait()
	})
}
