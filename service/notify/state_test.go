package notify

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"wf/cas"
	"wf/protocol"
)

// A fold is a journal of a sink in memory.
type fold struct {
	t   testing.TB
	st  *State
	now int64
	all []protocol.Entry
}

func newFold(t testing.TB) *fold {
	f := &fold{t: t, st: NewState(nil), now: 1}
	f.add(protocol.SinkOpened{Origin: "o", Runs: protocol.NewText("{}")})
	return f
}

// add appends an event and applies it.
func (f *fold) add(d protocol.Data) {
	f.t.Helper()
	data, err := cas.Marshal(d)
	if err != nil {
		f.t.Fatal(err)
	}
	e := protocol.Event{Kind: protocol.KindEvent, V: protocol.RecordVersion, Prev: f.st.Head, Seq: f.st.Seq + 1, TS: f.now, Type: d.EventType(), Data: data}
	block, err := cas.Encode(e)
	if err != nil {
		f.t.Fatal(err)
	}
	entry := protocol.Entry{Event: e, CID: block.Link, Raw: block.Data}
	if err := f.st.Apply(entry); err != nil {
		f.t.Fatal(err)
	}
	f.all = append(f.all, entry)
}

func (f *fold) due(run string, seq int) string {
	id := fmt.Sprintf("%s.%d", run, seq)
	f.add(protocol.DeliveryDue{ID: id, Run: protocol.RunID(run), Seq: protocol.Seq(seq), On: protocol.OnDone, Event: "e"})
	return id
}

// takes takes all that is due.
func (f *fold) takes(want ...string) {
	f.t.Helper()
	var got []string
	for {
		x, _ := f.st.Take(f.now)
		if x == nil {
			break
		}
		got = append(got, x.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		f.t.Fatalf("taken %v, want %v", got, want)
	}
}

// A delivery that fails holds back the later ones of its run, and no other run.
func TestAFailureHoldsBackItsRunAlone(t *testing.T) {
	f := newFold(t)
	f.due("a", 3)
	f.due("a", 5)
	f.due("b", 2)
	f.takes("a.3", "b.2")
	f.add(protocol.DeliveryFailed{ID: "a.3", Next: 100, Error: "no"})
	f.add(protocol.Delivered{ID: "b.2"})
	f.due("b", 4)
	f.takes("b.4")
	if x, next := f.st.Take(f.now); x != nil || next != 100 {
		t.Fatal(x, next)
	}
	f.now = 100
	f.takes("a.3")
	f.add(protocol.Delivered{ID: "a.3"})
	f.takes("a.5")
	f.add(protocol.DeliveryDead{ID: "a.5", Error: "three days"})
	f.due("a", 7)
	f.takes("a.7") // what is dead holds back nothing
	if dead := f.st.Dead(); len(dead) != 1 || dead[0].Error != "three days" {
		t.Fatal(dead)
	}
	f.now = 200
	f.add(protocol.DeliveryRevived{IDs: []string{"a.5", "unknown"}})
	f.takes() // behind a.7, which is under way
	f.add(protocol.Delivered{ID: "a.7"})
	f.takes("a.5")
	f.add(protocol.DeliveryDead{ID: "a.5", Gone: true})
	if len(f.st.Dead()) != 0 || len(f.st.Open()) != 1 || f.st.delivered != 3 { // b.4 is under way
		t.Fatal(f.st.Dead(), f.st.Open(), f.st.delivered)
	}
}

func TestWhatIsReleasedIsTakenAgain(t *testing.T) {
	f := newFold(t)
	f.due("a", 1)
	x, _ := f.st.Take(f.now)
	f.takes()
	f.st.Release(x)
	f.takes("a.1")
}

func TestAnEventThatDoesNotFollowIsRefused(t *testing.T) {
	f := newFold(t)
	f.due("a", 1)
	f.due("a", 2)
	other := NewState(nil)
	if err := other.Apply(f.all[0]); err != nil {
		t.Fatal(err)
	}
	if err := other.Apply(f.all[2]); err == nil {
		t.Error("event 3 follows event 1")
	}
}

// Whatever happens, the state that is restored from the stored form is the one of the whole journal, and goes on like
// it.
func TestTheStoredStateIsThatOfTheJournal(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := newFold(t)
		var ids []string
		seq := 0
		for range 200 {
			f.now++
			switch pick := r.IntN(6); {
			case pick < 2 || len(ids) == 0:
				seq++
				ids = append(ids, f.due(string(rune('a'+r.IntN(5))), seq))
			case pick == 2:
				f.add(protocol.Delivered{ID: ids[r.IntN(len(ids))]})
			case pick == 3:
				f.add(protocol.DeliveryFailed{ID: ids[r.IntN(len(ids))], Next: f.now + int64(r.IntN(50)), Error: "x"})
			case pick == 4:
				f.add(protocol.DeliveryDead{ID: ids[r.IntN(len(ids))], Gone: r.IntN(4) == 0})
			default:
				f.add(protocol.DeliveryRevived{IDs: []string{ids[r.IntN(len(ids))]}})
			}
			f.add(protocol.CursorMoved{Runs: protocol.NewText(fmt.Sprintf(`{"a":%d}`, seq))})
			if f.st.open != len(f.st.Open()) || len(f.st.byID) != f.st.open+len(f.st.dead) {
				t.Fatalf("seed %d: %d open, %d listed, %d dead, %d by id", seed, f.st.open, len(f.st.Open()), len(f.st.dead), len(f.st.byID))
			}
		}
		raw, err := f.st.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Restore(raw, f.st.Head, nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := back.Snapshot()
		if err != nil || !bytes.Equal(raw, again) {
			t.Fatalf("seed %d: the state is another one when it was stored: %v", seed, err)
		}
		f.now += 1000
		for {
			a, _ := f.st.Take(f.now)
			b, _ := back.Take(f.now)
			if a == nil || b == nil {
				if a != b {
					t.Fatalf("seed %d: %v, restored %v", seed, a, b)
				}
				break
			}
		}
	}
}

func TestDeadOnesAreKeptUpToABound(t *testing.T) {
	f := newFold(t)
	for i := 1; i <= maxDead+1; i++ {
		f.st.push(&Delivery{DeliveryDue: protocol.DeliveryDue{ID: fmt.Sprint(i), Run: "a", Seq: protocol.Seq(i)}})
		f.st.bury(protocol.DeliveryDead{ID: fmt.Sprint(i)})
	}
	if dead := f.st.Dead(); len(dead) != maxDead || dead[0].Seq != 2 || len(f.st.byID) != maxDead {
		t.Errorf("%d dead, the first is of event %d, %d by id", len(dead), dead[0].Seq, len(f.st.byID))
	}
}

func TestPausesGrowToAnHour(t *testing.T) {
	for attempts, want := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 10: 2560 * time.Second, 11: time.Hour, 12: time.Hour, 1000: time.Hour} {
		if got := pauseAfter(attempts, 0); got != want {
			t.Errorf("after %d: %s, want %s", attempts, got, want)
		}
		if got := pauseAfter(attempts, 0.999); got < want*3/4 || got >= want*4/5 {
			t.Errorf("after %d with chance: %s", attempts, got)
		}
	}
	day := 24 * time.Hour
	if over(2*day.Microseconds(), day) || !over(2*day.Microseconds()+1, day) {
		t.Error("a delivery lives for three days")
	}
}

func TestAnIDTellsStoreRunEventAndSink(t *testing.T) {
	a, b := cas.Raw([]byte("a")).Link, cas.Raw([]byte("b")).Link
	ids := map[string]bool{IDOf("o", "s", "r", a): true, IDOf("p", "s", "r", a): true, IDOf("o", "t", "r", a): true, IDOf("o", "s", "q", a): true, IDOf("o", "s", "r", b): true}
	if len(ids) != 5 || !ids[IDOf("o", "s", "r", a)] {
		t.Error(ids)
	}
}

// A hundred thousand notifications of as many runs, half of them delivered.
func BenchmarkFoldAndStore100000(b *testing.B) {
	f := newFold(b)
	for i := range 100_000 {
		id := f.due(fmt.Sprintf("RUN%07d", i), 1)
		if i%2 == 0 {
			f.add(protocol.Delivered{ID: id})
		}
	}
	b.ResetTimer()
	b.Run("fold", func(b *testing.B) {
		for b.Loop() {
			st := NewState(nil)
			for _, e := range f.all {
				if err := st.Apply(e); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	raw, err := f.st.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("restore", func(b *testing.B) {
		b.ReportMetric(float64(len(raw)), "bytes")
		for b.Loop() {
			if _, err := Restore(raw, f.st.Head, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("take", func(b *testing.B) {
		for b.Loop() {
			x, _ := f.st.Take(f.now)
			f.st.Release(x)
		}
	})
}
