package ratelimit

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// asProcess is an account as another process has it: with descriptors of its own, and the clock of the bubble.
func asProcess(dir string, lim Limits) *Account {
	l := newLedger(filepath.Join(dir, "account"))
	l.boot = func() (string, error) { return "boot", nil }
	l.now = func() int64 { return time.Now().UnixMicro() }
	return &Account{ID: "account", Provider: "p", Limits: lim, ledger: l}
}

// end is the end of a process.
func (a *Account) end() { a.ledger.forget() }

func ask(t *testing.T, a *Account) *Grant {
	t.Helper()
	g, err := a.Ask(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// 200 callers in two processes, and one process that ends in the middle.
func TestTwoProcessesTogetherKeepTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, lim := t.TempDir(), Limits{Requests: 60, InFlight: 20}
		began := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		flying := 0
		var all sync.WaitGroup
		for range 2 {
			a := asProcess(dir, lim)
			for range 100 {
				all.Go(func() {
					g, err := a.Ask(t.Context(), 10)
					if err != nil {
						t.Error(err)
						return
					}
					g.Sent()
					mu.Lock()
					if flying++; flying > lim.InFlight {
						t.Errorf("%d are in flight", flying)
					}
					at = append(at, time.Since(began))
					mu.Unlock()
					time.Sleep(rand.N(3 * time.Second))
					mu.Lock()
					flying--
					mu.Unlock()
					g.Done(Result{Sent: true, Used: 5})
				})
			}
		}
		all.Wait()
		synctest.Wait()
		for i := lim.Requests; i < len(at); i++ {
			if at[i]-at[i-lim.Requests] < Window-time.Microsecond {
				t.Fatalf("request %d is sent %v after the 60th before it", i, at[i]-at[i-lim.Requests])
			}
		}
		if took := time.Since(began); took > 4*Window {
			t.Errorf("200 requests at 60 a minute took %v", took)
		}
	})
}

// What a process that died held is free.
func TestTheEndOfAProcessFreesItsPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, lim := t.TempDir(), Limits{InFlight: 2}
		dying, waits, next := asProcess(dir, lim), asProcess(dir, lim), asProcess(dir, lim)
		ask(t, dying)
		ask(t, dying)
		err := waits.ledger.change(func(s *state, now int64, me int) bool { // it is at the head of the queue, and ends there
			return !s.ask(now, ticket{Member: me, Limits: lim}).granted
		})
		if err != nil {
			t.Fatal(err)
		}
		waits.end()
		got := make(chan *Grant)
		go func() { got <- ask(t, next) }()
		time.Sleep(time.Minute)
		select {
		case <-got:
			t.Error("a third is granted")
		default:
		}
		dying.end()
		<-got
	})
}

func TestCallersOfAProcessAreServedInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := asProcess(t.TempDir(), Limits{Requests: 1})
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				ask(t, a)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i) // one in a window
			})
			synctest.Wait()
		}
		all.Wait()
		for i, n := range order {
			if i != n {
				t.Fatalf("the order is %v", order)
			}
		}
	})
}

func TestACallerThatGivesUpLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, lim := t.TempDir(), Limits{Requests: 2}
		a, b := asProcess(dir, lim), asProcess(dir, lim)
		ask(t, a)
		ask(t, a).Done(Result{Sent: true})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := b.Ask(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		synctest.Wait()
		s, err := a.Look()
		if err != nil || len(s.Waiting) > 0 || s.Requests != 2 || s.InFlight != 1 || len(s.Flying) != 1 {
			t.Errorf("left %+v, %v", s, err)
		}
		if _, err := b.Ask(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRetryAfterHoldsAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, lim := t.TempDir(), Limits{Requests: 100}
		a, b := asProcess(dir, lim), asProcess(dir, lim)
		ask(t, a).Done(Result{Sent: true, RetryAfter: 30 * time.Second})
		synctest.Wait()
		began := time.Now()
		var hold Hold
		over := false
		ctx := WithWatcher(t.Context(), func(h Hold) func() {
			hold = h
			return func() { over = true }
		})
		if _, err := b.Ask(ctx, 1); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d < 30*time.Second || d > 31*time.Second {
			t.Errorf("waited %v", d)
		}
		if hold != (Hold{Provider: "p", Reason: ByRetryAfter}) || !over {
			t.Errorf("told of %+v, over: %v", hold, over)
		}
	})
}

// A hold of up to HoldAfter is not told of.
func TestAShortHoldIsNotToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			takes time.Duration
			want  int
		}{{HoldAfter - 200*time.Millisecond, 0}, {HoldAfter + 200*time.Millisecond, 1}} {
			a := asProcess(t.TempDir(), Limits{InFlight: 1})
			g := ask(t, a)
			time.AfterFunc(c.takes, func() { g.Done(Result{Sent: true}) })
			told := 0
			if _, err := a.Ask(WithWatcher(t.Context(), func(Hold) func() { told++; return func() {} }), 1); err != nil || told != c.want {
				t.Errorf("after %v: told %d times, %v", c.takes, told, err)
			}
		}
	})
}

// Whatever becomes of the file: no more than before gets through, and nothing stops for longer than a window.
func TestADamagedFileIsAFullWindow(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"foreign":   func(path string) error { return os.WriteFile(path, []byte("what is this"), 0o600) },
		"cut short": func(path string) error { return os.Truncate(path, headSize+5) },
		"emptied":   func(path string) error { return os.Truncate(path, 0) },
		"another boot": func(path string) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			s := newState("", Window)
			n, err := readState(f, s)
			if err != nil {
				return err
			}
			s.Boot, s.Sends[0].At = "another", 5
			return writeState(f, s, n+1)
		},
		"zeroed": func(path string) error {
			b := make([]byte, copySize+headSize)
			return os.WriteFile(path, b, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir, lim := t.TempDir(), Limits{Requests: 1}
				a := asProcess(dir, lim)
				ask(t, a).Done(Result{Sent: true, Used: 3})
				synctest.Wait()
				time.Sleep(Window / 2)
				if err := damage(a.Path()); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				meanwhile := Status{}
				waits := WithWatcher(t.Context(), func(Hold) func() {
					var err error
					if meanwhile, err = a.Look(); err != nil {
						t.Error(err)
					}
					return func() {}
				})
				if _, err := asProcess(dir, lim).Ask(waits, 1); err != nil {
					t.Fatal(err)
				}
				if meanwhile.Unknown != (name != "another boot") {
					t.Errorf("meanwhile: %+v", meanwhile)
				}
				if s, err := a.Look(); err != nil || s.Unknown || s.Requests != 1 {
					t.Errorf("%+v, %v", s, err)
				}
				if d := time.Since(began); d < Window || d > Window+2*time.Second {
					t.Errorf("the next call waited %v", d)
				}
			})
		})
	}
}

// A process that is killed while it writes leaves the state before.
func TestAHalfWrittenCopyIsNotRead(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := newState("a", Window)
	for n := uint64(1); n <= 5; n++ {
		s.Last = int64(n)
		if err := writeState(f, s, n); err != nil {
			t.Fatal(err)
		}
		whole := make([]byte, 400)
		got := newState("", Window)
		if number, err := readState(f, got); err != nil || number != n || got.Last != int64(n) {
			t.Fatalf("read %d %+v, %v", number, got, err)
		}
		if n == 1 {
			continue
		}
		at := int64(n%2) * copySize
		size, _ := f.ReadAt(whole, at)
		length := headSize + int(binary.LittleEndian.Uint32(whole[16:]))
		if length > size {
			t.Fatal("it is longer than this test reads")
		}
		for cut := 8; cut < length; cut++ { // the rest is of before
			torn := append([]byte(nil), whole[:length]...)
			for i := cut; i < length; i++ {
				torn[i] ^= 0x55
			}
			if _, err := f.WriteAt(torn, at); err != nil {
				t.Fatal(err)
			}
			got := newState("", Window)
			if number, err := readState(f, got); err != nil || number != n-1 || got.Last != int64(n-1) {
				t.Fatalf("cut at %d: read %d %+v, %v", cut, number, got, err)
			}
		}
		if _, err := f.WriteAt(whole[:length], at); err != nil {
			t.Fatal(err)
		}
	}
}

// A file that cannot be used is an error, and no way through.
func TestWithoutAFileNothingIsSent(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "limits"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := Open(filepath.Join(dir, "limits"), "p", "x", Limits{Requests: 1})
	for range 2 {
		if g, err := a.Ask(t.Context(), 1); g != nil || err == nil {
			t.Fatalf("got %v, %v", g, err)
		}
	}
}

func TestALedgerThatIsRemovedIsBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		a := asProcess(filepath.Join(dir, "limits"), Limits{Requests: 1, InFlight: 1})
		old := ask(t, a)
		if err := os.RemoveAll(filepath.Join(dir, "limits")); err != nil {
			t.Fatal(err)
		}
		ask(t, a)
		old.Done(Result{}) // not sent, and not of this ledger
		synctest.Wait()
		if s, err := a.Look(); err != nil || s.Requests != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestFingerprints(t *testing.T) {
	same := Fingerprint("https://api.openai.com/v1", "k")
	for _, base := range []string{"https://api.openai.com/v1/", "HTTPS://API.openai.com", "https://api.openai.com/"} {
		if Fingerprint(base, "k") != same {
			t.Errorf("%s is another account", base)
		}
	}
	for _, other := range [][2]string{{"https://api.openai.com/v1", "l"}, {"https://api.openai.com/v2", "k"}, {"http://api.openai.com/v1", "k"}, {"https://api.openai.com:8443/v1", "k"}} {
		if Fingerprint(other[0], other[1]) == same {
			t.Errorf("%v is the same account", other)
		}
	}
}

func TestLowestOfLimits(t *testing.T) {
	got := Limits{Requests: 60, InFlight: 3}.Lowest(Limits{Requests: 20, Tokens: 7, InFlight: 9})
	if want := (Limits{20, 7, 3}); got != want {
		t.Errorf("got %+v", got)
	}
}
