package words

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/store"
)

// limitsOf names the store of a process of these tests that lowers its own limits.
const limitsOf = "WF_TEST_WORDS_LIMITS"

// limit sets a limit of this process, and gives what it was.
func (p *place) limit(which int, n uint64) uint64 {
	p.Helper()
	var l syscall.Rlimit
	if err := syscall.Getrlimit(which, &l); err != nil {
		p.Fatal(err)
	}
	had := l.Cur
	l.Cur = n
	if err := syscall.Setrlimit(which, &l); err != nil {
		p.Fatal(err)
	}
	return had
}

// segments are the names of the files in the folder that hold words.
func (p *place) segments() (out []string) {
	p.Helper()
	names, err := filepath.Glob(filepath.Join(p.folder(), "*"+segSuffix))
	if err != nil {
		p.Fatal(err)
	}
	for _, name := range names {
		out = append(out, filepath.Base(name))
	}
	return out
}

// shut is a store that is closed, of which the heads are known.
type shut struct {
	store.Store
	heads []cas.Head
}

func (s shut) Heads(context.Context, string) ([]cas.Head, error) { return s.heads, nil }

func (s shut) Head(_ context.Context, name string) (cas.Head, error) {
	i := slices.IndexFunc(s.heads, func(h cas.Head) bool { return h.Name == name })
	if i < 0 {
		return cas.Head{}, nil
	}
	return s.heads[i], nil
}

// says commits that a run says a text behind what is indexed of it, as if it had.
func (p *place) says(run protocol.RunID, text string) error {
	p.Helper()
	if err := p.x.take(p.Context()); err != nil {
		p.Fatal(err)
	}
	defer p.x.give()
	b, at := &builder{}, p.x.at.at(string(run))
	b.begin(unit{id: string(run), from: at, seq: at + 1, head: "h"})
	b.text(at+1, ofAnswer, text)
	return p.x.commit(p.Context(), p.Context(), b, nil)
}

// Errors of the machine, as that too many files are open or a disk is full, make no index count as damaged; and few files are open at
// once, however many segments there are.
func TestErrorsOfTheMachineAreNoDamage(t *testing.T) {
	if os.Getenv(limitsOf) == "" {
		p := newPlace(t, t.TempDir())
		run := p.begin(talk, "rails")
		p.filled(400, 1)
		p.catchUpOf(run)
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), limitsOf+"="+p.s.Dir())
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	p := newPlace(t, os.Getenv(limitsOf))
	heads := p.heads()
	run := protocol.RunOf(heads[0].Name)
	if err := p.s.Close(); err != nil { // it opens and closes files when it likes
		t.Fatal(err)
	}
	again := func() { p.x = New(shut{p.s, heads}, p.e, key) }
	again()
	want := func(search string) {
		t.Helper()
		if !p.find(search).Has(run) {
			t.Errorf("%q is not found", search)
		}
	}
	first := p.segments()
	if len(first) < 300 {
		t.Fatalf("%d segments", len(first))
	}
	var all []*os.File // of all numbers below the limit
	for top := uintptr(0); top < 99; {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		all, top = append(all, f), f.Fd()
	}
	most := p.limit(syscall.RLIMIT_NOFILE, 100)
	three := all[:3]
	for _, f := range three {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want("rails")
	for _, id := range []protocol.RunID{"RUN0000007", "RUN0000390"} {
		if err := p.x.Purge(t.Context(), []protocol.RunID{id}); err != nil {
			t.Error("with room for three files:", err)
		}
	}
	again()
	want("rails")
	first = p.segments()

	for i := range three {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = f
	}
	for _, known := range []bool{true, false} {
		if !known {
			again()
		}
		if _, err := p.x.Find(t.Context(), nil, "anna"); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("a search without room for a file, in an index that was read before (%v): %v", known, err)
		}
		p.x.Refresh(t.Context())
		if err := p.x.CatchUp(t.Context(), nil, CatchUpOptions{}); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("an index of which much is to be dropped, read before (%v): %v", known, err)
		}
		if err := p.x.Purge(t.Context(), []protocol.RunID{run}); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("a deletion, read before (%v): %v", known, err)
		}
	}
	p.limit(syscall.RLIMIT_NOFILE, most)
	want("rails")
	p.limit(syscall.RLIMIT_NOFILE, 100)
	if err := p.says(run, "kept"); err != nil { // in memory
		t.Error(err)
	}
	p.limit(syscall.RLIMIT_NOFILE, most)
	if now := p.segments(); !slices.Equal(now, first) {
		t.Errorf("%d segments were there, and %d are now", len(first), len(now))
	}
	want("rails kept")

	signal.Ignore(syscall.SIGXFSZ)
	words := ""
	for i := range 1000 {
		words += fmt.Sprintf(" x%dx%d", i*i, i)
	}
	for size, text := range map[uint64]string{4 << 10: "full4096", 1<<12 + 1: "full4097" + words} { // for a segment, and not for the manifest; for neither
		long := p.limit(syscall.RLIMIT_FSIZE, size)
		if err := p.says(run, text); err != nil {
			t.Error(err)
		}
		want(fmt.Sprintf("rails kept full%d", size))
		p.limit(syscall.RLIMIT_FSIZE, long)
		if now := p.segments(); !slices.Equal(now, first) {
			t.Errorf("with files of at most %d bytes: %d segments were there, and %d are now", size, len(first), len(now))
		}
	}
	if err := p.says(run, "room"); err != nil {
		t.Error(err)
	}
	again()
	want("rails kept full4096 full4097 room")
	if p.x.at.unit("RUN0000100") == nil { // which the store does not have
		t.Error("it was made anew")
	}
	for _, f := range all {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if errs := []error{syscall.EMFILE, syscall.ENFILE, syscall.EACCES, syscall.ENOMEM, syscall.EIO, syscall.ENOSPC}; slices.ContainsFunc(errs, damage) {
		t.Error("an error of the machine counts as damage")
	}
}

// away is a shelf that cannot be reached while there is an error.
type away struct {
	shelf
	err *error
}

func (a away) stamp(ctx context.Context) (string, error) {
	if *a.err != nil {
		return "", *a.err
	}
	return a.shelf.stamp(ctx)
}

func (a away) read(ctx context.Context, names []string, wanted func(int) []part, f func(int, io.ReaderAt) error) error {
	if *a.err != nil {
		return *a.err
	}
	return a.shelf.read(ctx, names, wanted, f)
}

// A database that starts again has no socket, or ends a connection: its index stays, here and there.
func TestAShelfThatIsAwayIsNoDamage(t *testing.T) {
	p := newPlace(t, t.TempDir())
	run := p.begin(talk, "rails")
	p.catchUp()
	there := p.segments()
	for _, cause := range []error{syscall.ENOENT, syscall.ECONNREFUSED, io.EOF, io.ErrUnexpectedEOF} {
		var err error
		p.again()
		p.x.shelf = away{p.x.shelf, &err}
		p.want("rails", run)
		err = fmt.Errorf("%w: %w", protocol.ErrUnreachable, cause)
		if _, got := p.x.Find(t.Context(), nil, "anna"); !errors.Is(got, cause) {
			t.Errorf("%v: a search says %v", cause, got)
		}
		if got := p.x.CatchUp(t.Context(), nil, CatchUpOptions{}); !errors.Is(got, cause) {
			t.Errorf("%v: a look at what is behind says %v", cause, got)
		}
		if p.x.at.runs != 1 || p.x.ignore {
			t.Errorf("%v: what was known is forgotten", cause)
		}
		err = nil
		if p.want("rails", run); !slices.Equal(there, p.segments()) {
			t.Errorf("%v: the index was made anew", cause)
		}
	}
}

// While another process writes, a search goes on in memory; what both have indexed is taken as it lies in the folder.
func TestASearchDoesNotWaitForAWriter(t *testing.T) {
	p := newPlace(t, t.TempDir())
	a := p.begin(talk, "rails")
	p.catchUp()
	b := p.begin(talk, "roads")
	unlock, err := p.x.shelf.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.x.CatchUp(t.Context(), p.heads(), CatchUpOptions{Within: 20 * lockPoll}); err != nil {
		t.Fatal(err)
	}
	unlock()
	p.want("speak", a, b)
	if len(p.x.memory) != 1 {
		t.Errorf("%d segments are kept in memory", len(p.x.memory))
	}
	here := p.x
	p.again()
	p.catchUp()
	p.answer(a, "zeppelins")
	p.catchUp()
	there := p.segments()
	p.x = here
	p.want("speak", a, b)
	p.want("zeppelins", a)
	if len(p.x.memory) != 0 || !slices.Equal(there, p.segments()) {
		t.Errorf("%d segments are kept in memory, and %v lie where %v did", len(p.x.memory), p.segments(), there)
	}
	if err := errors.Join(p.e.Cancel(t.Context(), b, "ben", ""), second(p.e.Delete(t.Context(), b, engine.Burial{}))); err != nil { // as by a process without an index
		t.Fatal(err)
	}
	for _, waits := range []bool{true, false} {
		if waits {
			if unlock, err = p.x.shelf.lock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.x.CatchUp(t.Context(), p.heads(), CatchUpOptions{Within: 20 * lockPoll}); err != nil {
			t.Fatal(err)
		}
		c := &catching{x: p.x, ctx: t.Context(), wait: t.Context()}
		if waits {
			ended, stop := context.WithCancel(t.Context())
			stop()
			c.wait = ended
		}
		if err := errors.Join(p.x.take(t.Context()), c.again(a, p.heads()[0]), c.commit()); err != nil {
			t.Fatal(err)
		}
		p.x.give()
		if waits {
			unlock()
			if !p.holds(string(b)) || !slices.Equal(there, p.segments()) || p.x.ignore {
				t.Error("while another process writes, what it does is not changed")
			}
		}
		p.want("speak", a)
		p.want("zeppelins", a)
	}
	if p.holds(string(b)) {
		t.Error("what is gone is left")
	}
}

// Small segments are joined so many at once that what they make can be read.
func TestSegmentsAreJoinedInGroups(t *testing.T) {
	x := New(newPlace(t, t.TempDir()).s, nil, key)
	for n, want := range map[int]int{joinMany - 1: joinMany - 1, joinMany: 1, joinAtOnce - 1: 1, joinAtOnce: 1, joinAtOnce + 1: 2} {
		var segs []*segment
		for i := range n {
			b := &builder{}
			b.begin(unit{id: fmt.Sprint("R", i), seq: 1})
			b.text(1, ofAnswer, "x "+strings.Repeat("y", i))
			s, err := x.memorize(b)
			if err != nil {
				t.Fatal(err)
			}
			segs = append(segs, s)
		}
		got, err := x.joined(t.Context(), segs, false)
		units := 0
		for _, s := range got {
			units += len(s.units)
		}
		if err != nil || len(got) != want || units != n {
			t.Errorf("%d segments become %d with %d units, want %d: %v", n, len(got), units, want, err)
		}
	}
	if joinAtOnce*joinUpTo > segMost/2 {
		t.Error("segments that are joined may make one that is not read")
	}
}

// Segments are joined around one that is too large for that, which has what is between: nothing is read anew.
func TestSegmentsAreJoinedAroundALargeOne(t *testing.T) {
	p := newPlace(t, t.TempDir())
	run := p.begin(talk, "rails")
	p.catchUp()
	var large strings.Builder
	for i := 0; large.Len() < 2*joinUpTo; i++ {
		fmt.Fprintf(&large, "%x ", uint32(i)*2654435761)
	}
	at := p.x.at.at(string(run))
	for large := range strings.SplitSeq(large.String()[:large.Len()/textMax*textMax], "\n") {
		b := &builder{}
		b.begin(unit{id: string(run), from: at, seq: at + 100, head: "h"})
		for i := 0; len(large) > 0; i++ {
			part := cut(large, textMax)
			b.text(at+1+protocol.Seq(i), ofAnswer, part)
			large = large[len(part):]
		}
		if err := p.x.commit(t.Context(), t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 * joinMany {
		if err := p.says(run, fmt.Sprintf("then%d", i)); err != nil {
			t.Fatal(err)
		}
		p.again()
		p.want("rails 9e3779b1 then0", run)
	}
	if n := p.x.at.at(string(run)); n != at+100+3*joinMany || len(p.x.at.segs) > joinMany+1 {
		t.Errorf("it is indexed up to event %d, want %d, in %d segments", n, at+100+3*joinMany, len(p.x.at.segs))
	}
	if err := p.x.Purge(t.Context(), []protocol.RunID{run}); err != nil || p.holds("then") || p.holds("rails") {
		t.Errorf("it is not gone: %v", err)
	}
}

// A view that follows another one is that of its segments.
func TestAViewFollowsAnother(t *testing.T) {
	part := func(id string, from, seq protocol.Seq) *segment {
		return &segment{units: []unit{{id: id, from: from, seq: seq}}}
	}
	a, b, c, d := part("A", 0, 3), part("A", 3, 5), part("B", 0, 2), part("A", 0, 5)
	fork := &segment{units: []unit{{id: "F", base: "A", shared: 4, from: 4, seq: 6}}}
	def := part(defPrefix+"x", 0, 1)
	v := &view{}
	for i, c := range []struct {
		segs []*segment
		runs int // -1 is damaged
	}{
		{nil, 0}, {[]*segment{a}, 1}, {[]*segment{a, b}, 1}, {[]*segment{b, a, c}, 2}, {[]*segment{c, d}, 2}, {[]*segment{c, d, def}, 2}, {[]*segment{d, fork, def}, 2},
		{[]*segment{a, fork}, -1}, {[]*segment{fork}, -1}, {[]*segment{b}, -1}, {[]*segment{a, d}, -1}, {[]*segment{c, def}, 1}, {[]*segment{part("F", 2, 3)}, -1}, {[]*segment{a, b, fork, def}, 2}, {nil, 0},
	} {
		next, err := v.with(c.segs)
		fresh, err2 := (&view{}).with(c.segs)
		if (err == nil) != (err2 == nil) || (err == nil) != (c.runs >= 0) || err != nil && !errors.Is(err, errDamaged) {
			t.Errorf("step %d: %v, read anew %v", i, err, err2)
			continue
		}
		if err != nil {
			continue
		}
		units, had := map[string]*unit{}, len(v.segs)
		for u := range next.all() {
			units[u.id] = u
		}
		for u := range fresh.all() {
			if units[u.id] != u || next.unit(u.id) != u {
				t.Errorf("step %d: %s is not that of the segments", i, u.id)
			}
			delete(units, u.id)
		}
		if next.runs != c.runs || fresh.runs != c.runs || len(units) != 0 || len(v.segs) != had {
			t.Errorf("step %d: %d runs, read anew %d, want %d; %d units too many", i, next.runs, fresh.runs, c.runs, len(units))
		}
		v = next
	}
}
