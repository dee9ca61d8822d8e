package hook

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"wf/files"
	"wf/files/filestest"
	"wf/protocol"
)

// A begun is what a spool has begun in a test: a store of runs, in memory.
type begun struct {
	mu    sync.Mutex
	order map[string][]string // requests by hook, in the order in which they began first
	times map[string]int      // how often each was begun
	more  chan struct{}       // closed with the next one

	fails func(k Kept) error // nil is never
}

func newBegun() *begun {
	return &begun{order: map[string][]string{}, times: map[string]int{}, more: make(chan struct{})}
}

func (b *begun) begin(_ context.Context, all []Kept, definition func(string) ([]byte, error)) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { close(b.more); b.more = make(chan struct{}) }()
	for n, k := range all {
		if b.fails != nil {
			if err := b.fails(k); err != nil {
				return n, err
			}
		}
		if _, err := definition(k.Definition); err != nil {
			return n, err
		}
		if b.times[k.Request]++; b.times[k.Request] == 1 {
			b.order[k.Hook] = append(b.order[k.Hook], k.Request)
		}
	}
	return len(all), nil
}

// await waits until something holds of what has begun.
func (b *begun) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for {
		b.mu.Lock()
		done, more := is(), b.more
		b.mu.Unlock()
		if done {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}

func (b *begun) count() (n int) {
	for _, all := range b.order {
		n += len(all)
	}
	return n
}

var testKey = []byte("the key of a user, of which these are 32")

type spoolStage struct {
	t *testing.T
	*Spool
	log  *lockedWriter
	text string // name of a definition
}

func spoolIn(t *testing.T, dir string, o SpoolOptions) *spoolStage {
	t.Helper()
	s := &spoolStage{t: t, log: &lockedWriter{}}
	o.Dir, o.Log = dir, slog.New(slog.NewTextHandler(s.log, nil))
	if o.Key == nil {
		o.Key = testKey
	}
	var err error
	if s.Spool, err = OpenSpool(o); err != nil {
		t.Fatal(err)
	}
	if s.text, err = s.Define([]byte("a definition")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

type lockedWriter struct {
	mu sync.Mutex
	w  bytes.Buffer
}

func (s *spoolStage) logged() string {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.w.String()
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// serve has it begin what waits.
func (s *spoolStage) serve(b *begun) {
	ctx, stop := context.WithCancel(s.t.Context())
	var work sync.WaitGroup
	work.Go(s.Serve(ctx, b.begin))
	s.t.Cleanup(func() { stop(); work.Wait() })
}

func (s *spoolStage) send(hook, request string, what ...string) (Taken, error) {
	return s.Take(s.t.Context(), hook, request, func() (*Kept, Taken, error) {
		return &Kept{Run: protocol.RunID("R-" + request), Definition: s.text, What: json.RawMessage(cmpOr(what, `{}`))}, Taken{}, nil
	})
}

func cmpOr(all []string, other string) string {
	if len(all) > 0 {
		return all[0]
	}
	return other
}

func (s *spoolStage) sent(hook, request string, what ...string) {
	s.t.Helper()
	taken, err := s.send(hook, request, what...)
	if err != nil || !taken.Fresh || taken.Run != protocol.RunID("R-"+request) {
		s.t.Fatalf("%s of %s: %+v, %v", request, hook, taken, err)
	}
}

func names(hook string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s/%05d", hook, i))
	}
	return out
}

// Events of several hooks that come side by side begin once each, and those of a hook in the order in which they were answered.
func TestEventsOfAHookBeginInTheirOrder(t *testing.T) {
	const each = 500
	s, b := spoolIn(t, t.TempDir(), SpoolOptions{}), newBegun()
	hooks := []string{"a", "b", "c"}
	for _, name := range hooks { // some wait before anything begins
		for _, request := range names(name, each)[:100] {
			s.sent(name, request)
		}
	}
	s.serve(b)
	var work sync.WaitGroup
	for _, name := range hooks {
		work.Go(func() {
			for _, request := range names(name, each)[100:] {
				if taken, err := s.send(name, request); err != nil || !taken.Fresh {
					t.Errorf("%s: %+v, %v", request, taken, err)
				}
			}
		})
	}
	work.Wait()
	b.await(t, "all begin", func() bool { return b.count() == each*len(hooks) })
	for _, name := range hooks {
		if !slices.Equal(b.order[name], names(name, each)) {
			t.Errorf("%s began in another order", name)
		}
	}
	for request, n := range b.times {
		if n != 1 {
			t.Errorf("%s was begun %d times", request, n)
		}
	}
}

// The same event is kept once: at once, while it waits, in the next process, and where what would keep it fails.
func TestTheSameEventIsKeptOnce(t *testing.T) {
	dir := t.TempDir()
	s := spoolIn(t, dir, SpoolOptions{})
	var work sync.WaitGroup
	var fresh, asked atomic.Int32
	for range 50 {
		work.Go(func() {
			taken, err := s.Take(t.Context(), "a", "once", func() (*Kept, Taken, error) {
				if asked.Add(1) == 1 {
					return nil, Taken{}, errors.New("the first one fails")
				}
				return &Kept{Run: "R-once", Definition: s.text, What: json.RawMessage(`{}`)}, Taken{}, nil
			})
			if err == nil && taken.Run != "R-once" {
				t.Errorf("%+v", taken)
			}
			if taken.Fresh {
				fresh.Add(1)
			}
		})
	}
	work.Wait()
	if fresh.Load() != 1 || asked.Load() != 2 {
		t.Errorf("%d are fresh, %d were looked at", fresh.Load(), asked.Load())
	}
	// One that begins nothing is looked at for each, and says so.
	taken, err := s.Take(t.Context(), "a", "none", func() (*Kept, Taken, error) { return nil, Taken{Run: "before"}, nil })
	if err != nil || taken != (Taken{Run: "before"}) {
		t.Errorf("%+v, %v", taken, err)
	}
	if left, err := s.Close(); left != 1 || err != nil {
		t.Errorf("%d are left, %v", left, err)
	}
	if _, err := s.send("a", "late"); !errors.Is(err, protocol.ErrShuttingDown) {
		t.Errorf("after the end: %v", err)
	}
	s = spoolIn(t, dir, SpoolOptions{})
	if taken, err := s.send("a", "once"); err != nil || taken != (Taken{Run: "R-once"}) {
		t.Errorf("in the next process: %+v, %v", taken, err)
	}
	b := newBegun()
	s.serve(b)
	b.await(t, "it begins", func() bool { return b.times["once"] == 1 })
}

// Below, at and beyond: one hook has one half, two a third each, and another one always finds room.
func TestWhatWaitsIsBounded(t *testing.T) {
	fill := func(s *spoolStage, hook string) (n int) {
		for ; ; n++ {
			if _, err := s.send(hook, fmt.Sprintf("%s/%05d", hook, n), `{"x":"0123456789"}`); err != nil {
				if !errors.Is(err, ErrFull) {
					t.Fatal(err)
				}
				return n
			}
		}
	}
	s := spoolIn(t, t.TempDir(), SpoolOptions{Events: 600})
	if n := fill(s, "a"); n != 300 {
		t.Errorf("one hook has %d of 600", n)
	}
	if n := fill(s, "b"); n != 150 {
		t.Errorf("then another one has %d", n)
	}
	if n := fill(s, "c"); n != 75 {
		t.Errorf("then a third one has %d", n)
	}
	b := newBegun()
	s.serve(b)
	b.await(t, "all begin", func() bool { return b.count() == 525 })
	awaitDepth(t, s.Spool, 0)
	for _, hook := range []string{"a", "b", "c"} {
		s.sent(hook, hook+"/again") // there is room again
	}

	at := time.Date(2026, 1, 2, 3, 4, 5, 6e8, time.UTC) // texts of times have other lengths
	fixed := func() time.Time { return at }
	probe := spoolIn(t, t.TempDir(), SpoolOptions{Now: fixed})
	probe.sent("a", "a/00000", `{"x":"0123456789"}`)
	_, size, oldest := probe.Depth()
	if oldest.IsZero() {
		t.Error("the oldest has no time")
	}
	for _, fits := range []int{1, 10, 100} {
		for _, more := range []int64{-1, 0, 1} {
			s := spoolIn(t, t.TempDir(), SpoolOptions{Bytes: 2*size*int64(fits) + 2*more, Now: fixed})
			want := fits
			if more < 0 {
				want--
			}
			if want == 0 {
				if _, err := s.send("a", "a/00000", `{"x":"0123456789"}`); !errors.Is(err, ErrUnfit) {
					t.Errorf("an event that is larger than all that may wait: %v", err)
				}
				continue
			}
			if n := fill(s, "a"); n != want {
				t.Errorf("%d bytes take %d events of %d, not %d", 2*size*int64(fits)+2*more, n, size, want)
			}
		}
	}
}

func awaitDepth(t *testing.T, s *Spool, want int) {
	t.Helper()
	filestest.Until(t, fmt.Sprint(want, " events wait"), func() bool { n, _, _ := s.Depth(); return n == want }, nil)
}

// At each moment what is on disk has all that was answered and has not begun, in order, whatever was being written: what a killed
// process leaves, with an end that was torn at any byte.
func TestACrashAtAnyMomentLosesNoEvent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	s, b := spoolIn(t, dir, SpoolOptions{}), newBegun()
	var stuck atomic.Bool
	b.fails = func(k Kept) error {
		if stuck.Load() && k.Hook == "a" {
			return errors.New("not now")
		}
		return nil
	}
	s.serve(b)
	var answered []string
	big := `{"x":"` + strings.Repeat("x", 40<<10) + `"}`
	for i := range 400 {
		hook := string(rune('a' + rng.IntN(3)))
		request := fmt.Sprintf("%s/%05d", hook, i)
		if taken, err := s.send(hook, request, big[:7]+big[8+rng.IntN(len(big)-16):]); err != nil || !taken.Fresh {
			t.Fatalf("%s: %+v, %v", request, taken, err)
		}
		answered = append(answered, request)
		if rng.IntN(40) == 0 {
			stuck.Store(!stuck.Load())
		}
		if rng.IntN(8) != 0 {
			continue
		}
		image := t.TempDir()
		copyTree(t, dir, image, rng)
		b.mu.Lock()
		after := map[string]bool{}
		for request := range b.times {
			after[request] = true
		}
		b.mu.Unlock()
		next, again := spoolIn(t, image, SpoolOptions{}), newBegun()
		next.serve(again)
		awaitDepth(t, next.Spool, 0)
		if _, err := next.Close(); err != nil {
			t.Fatal(err)
		}
		for _, request := range answered {
			if !after[request] && again.times[request] == 0 {
				t.Fatalf("event %d: %s was answered, had not begun, and is not in what is on disk", i, request)
			}
		}
		for hook, order := range again.order {
			if !slices.IsSorted(order) {
				t.Fatalf("event %d: those of %s begin in another order: %v", i, hook, order)
			}
		}
	}
	stuck.Store(false)
	b.await(t, "all begin", func() bool { return b.count() == len(answered) })
}

// copyTree copies what is on disk at a moment, and half of the times a part of a frame behind it.
func copyTree(t *testing.T, from, to string, rng *rand.Rand) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.Name() == eventFile && rng != nil && rng.IntN(2) == 0 {
			torn, err := (&spoolFile{key: testKey}).frame(record{Kept: &Kept{Hook: "a", Request: "torn"}})
			if err != nil {
				return err
			}
			b = append(b, torn[:rng.IntN(len(torn))]...)
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What cannot be read costs what it was, and no more: a torn end, a byte that changed, a file that another user wrote.
func TestADamagedFileCostsWhatIsDamaged(t *testing.T) {
	origin := t.TempDir()
	s := spoolIn(t, origin, SpoolOptions{})
	var ends []int64
	all := names("a", 5)
	for _, request := range all {
		s.sent("a", request, `{"x":"`+magic+`"}`) // what looks like a frame is none
		ends = append(ends, s.file.end)
	}
	if _, err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(origin, "1", eventFile))
	if err != nil {
		t.Fatal(err)
	}
	definition, err := os.ReadFile(filepath.Join(origin, "1", s.text+definitionIs))
	if err != nil {
		t.Fatal(err)
	}
	open := func(content []byte, key []byte) (order []string, log string, damaged bool) {
		dir := t.TempDir()
		if err := errors.Join(files.MakeDir(filepath.Join(dir, "1")), os.WriteFile(filepath.Join(dir, "1", eventFile), content, 0o600),
			os.WriteFile(filepath.Join(dir, "1", s.text+definitionIs), definition, 0o600)); err != nil {
			t.Fatal(err)
		}
		left, err := Look(dir, key)
		if err != nil {
			t.Fatal(err)
		}
		s, b := spoolIn(t, dir, SpoolOptions{Key: key}), newBegun()
		if n, _, _ := s.Depth(); n != left.Events {
			t.Errorf("a look finds %d events, and the spool %d", left.Events, n)
		}
		s.serve(b)
		awaitDepth(t, s.Spool, 0)
		if _, err := s.Close(); err != nil {
			t.Fatal(err)
		}
		old, err := os.ReadFile(filepath.Join(dir, "1", damagedFile))
		if err == nil && !bytes.Equal(old, content) {
			t.Error("what is kept of the damaged file is another one")
		}
		return b.order["a"], s.logged(), err == nil
	}
	cuts := []int64{0, 1, ends[0] - 1, ends[0], ends[1]}
	for cut := ends[3]; cut <= ends[4]; cut += 3 {
		cuts = append(cuts, cut)
	}
	for _, cut := range cuts {
		n := 0
		for n < len(ends) && ends[n] <= cut {
			n++
		}
		order, _, damaged := open(whole[:cut], testKey)
		if atEnd := cut == 0 || n > 0 && ends[n-1] == cut; !slices.Equal(order, all[:n]) && n > 0 || damaged == atEnd {
			t.Fatalf("cut at byte %d: %v, put away: %v", cut, order, damaged)
		}
	}
	places := []int64{0, ends[0] - 1, ends[3], ends[4] - 1}
	for at := ends[1]; at < ends[2]; at += 3 {
		places = append(places, at)
	}
	for _, at := range places {
		n := 0
		for ends[n] <= at {
			n++
		}
		bad := slices.Clone(whole)
		bad[at] ^= 0x20
		order, log, damaged := open(bad, testKey)
		if want := slices.Delete(slices.Clone(all), n, n+1); !slices.Equal(order, want) || !damaged {
			t.Fatalf("byte %d is another one: %v", at, order)
		}
		if n < len(ends)-1 && !strings.Contains(log, "level=ERROR") {
			t.Fatalf("byte %d is another one: %s", at, log)
		}
	}
	if order, log, damaged := open(whole, []byte("the key of another user")); len(order) > 0 || !damaged || !strings.Contains(log, "was written by another user") {
		t.Errorf("of another user: %v, %s", order, log)
	}
}

// An event that cannot begin for a reason of its own holds up no other; for any other reason those behind it wait, and nothing is lost.
func TestAnEventThatCannotBegin(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	var clock atomic.Int64 // ns since now
	s := spoolIn(t, dir, SpoolOptions{Now: func() time.Time { return now.Add(time.Duration(clock.Load())) }})
	b := newBegun()
	var busy, unfit atomic.Bool
	busy.Store(true)
	unfit.Store(true)
	b.fails = func(k Kept) error {
		switch {
		case k.Request == "a/00001" && unfit.Load():
			return fmt.Errorf("%w: of its own", ErrUnfit)
		case k.Request == "a/00003" && busy.Load():
			return errors.New("the disk is full")
		}
		return nil
	}
	s.serve(b)
	all := names("a", 6)
	for _, request := range all {
		s.sent("a", request)
	}
	b.await(t, "those before the one that waits begin", func() bool { return len(b.order["a"]) == 2 })
	if n, _, _ := s.Depth(); n != 4 {
		t.Errorf("%d wait", n)
	}
	busy.Store(false)
	b.await(t, "those behind it begin", func() bool { return len(b.order["a"]) == 5 })
	if want := slices.Delete(slices.Clone(all), 1, 2); !slices.Equal(b.order["a"], want) {
		t.Errorf("%v", b.order["a"])
	}
	awaitDepth(t, s.Spool, 1)
	if taken, err := s.send("a", "a/00001"); err != nil || taken.Fresh {
		t.Errorf("sent again: %+v, %v", taken, err)
	}
	clock.Store(int64(asideMost)) // not yet more than a week
	s.tryAside()
	awaitLog(t, s, "put aside", 2)
	awaitDepth(t, s.Spool, 1)
	unfit.Store(false)
	s.tryAside()
	b.await(t, "it begins after all", func() bool { return len(b.order["a"]) == 6 })
	awaitDepth(t, s.Spool, 0)
	unfit.Store(true)
	s.sent("a", "a/00001")
	awaitLog(t, s, "put aside", 3)
	clock.Add(int64(asideMost) + 1)
	s.tryAside()
	awaitLog(t, s, "the event is dropped", 1)
	awaitDepth(t, s.Spool, 0)
}

func awaitLog(t *testing.T, s *spoolStage, text string, n int) {
	t.Helper()
	filestest.Until(t, "the log says "+text, func() bool { return strings.Count(s.logged(), text) >= n }, nil)
}

// A file of another user, or of a clone, says lengths and sizes as it likes: what is read of it at once has a bound, and the event behind it is
// found.
func TestAForeignFileTakesNoMemory(t *testing.T) {
	key := []byte("0123456789abcdef")
	s := &spoolFile{key: key}
	frame, err := s.frame(record{Kept: &Kept{Hook: "h", Request: "r", What: json.RawMessage("{}")}})
	if err != nil {
		t.Fatal(err)
	}
	head := func(length uint32) []byte {
		return slices.Concat([]byte(magic), binary.BigEndian.AppendUint32(nil, length), make([]byte, sealSize))
	}
	for name, at := range map[string]struct {
		before []byte
		gap    int64 // of nothing, behind that
	}{
		"a length beyond all":        {head(1<<32 - 1), 0},
		"a length as long as it is":  {head(3 << 30), 4 << 30},
		"the longest frame":          {head(mostFrame - uint32(headSize)), mostFrame},
		"nothing":                    {nil, mostFile + 1},
		"less than is looked at":     {nil, mostFile - int64(len(frame))},
		"a border within the frame":  {nil, mostFile - int64(len(frame))/2},
		"a border within the head":   {nil, mostFile - 3},
		"a border within the window": {nil, 1<<20 - 2},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := os.Create(filepath.Join(t.TempDir(), "events"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			place := int64(len(at.before)) + at.gap
			if _, err := f.Write(at.before); err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(frame, place); err != nil {
				t.Fatal(err)
			}
			if testing.Short() && place > 1<<30 {
				t.Skip("reads gigabytes")
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			waits, lost, _, err := s.waiting(f, place+int64(len(frame)))
			runtime.ReadMemStats(&after)
			if err != nil || len(waits) != 1 || waits[0].at != place || lost != place {
				t.Errorf("%d events, %d bytes lost, %v", len(waits), lost, err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > mostFrame+64<<20 {
				t.Errorf("it took %d MB", took>>20)
			}
		})
	}
}
