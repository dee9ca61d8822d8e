package cas

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"wf/protocol"
)

// wholeArchives are archives of Export: of a run alone, and with another one.
func wholeArchives(t *testing.T) map[string][]byte {
	t.Helper()
	s := openSample(t)
	for _, name := range []string{"step-limit", "loop"} {
		z, err := os.Open("../testdata/golden/" + name + "/f2s1/run.car.gz")
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		data, err := gzip.NewReader(z)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Import(t.Context(), data, s, ImportOptions{Run: protocol.RunID(name)}); err != nil {
			t.Fatal(err)
		}
	}
	alone, _ := exported(t, s, "step-limit")
	var both bytes.Buffer
	if _, err := Export(t.Context(), &both, s, ExportOptions{}, "loop", "step-limit"); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"a run": alone, "a run with another": both.Bytes()}
}

// sparse is of how many bytes of an archive one is tried, where it is not the header: of the smallest archive each.
func sparse(name string) int {
	switch {
	case testing.Short():
		return 37
	case name == "a run":
		return 1
	}
	return 13
}

// tried is an archive that was changed: verify must find it, and import must not take it.
type tried struct {
	t     *testing.T
	store *Store // into which it goes
	heads string // of the store, as they must stay
	size  int64
}

func newTried(t *testing.T, s *Store) *tried {
	x := &tried{t: t, store: s}
	x.heads, x.size = x.kept()
	return x
}

func (x *tried) kept() (heads string, size int64) {
	x.t.Helper()
	all, err := x.store.Heads(x.t.Context(), "")
	if err != nil {
		x.t.Fatal(err)
	}
	n, err := x.store.Size(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	return fmt.Sprint(all), n.Live + n.Blobs
}

func (x *tried) refused(what string, data []byte, verified bool) {
	x.t.Helper()
	r, err := VerifyCAR(x.t.Context(), bytes.NewReader(data), VerifyOptions{})
	if err != nil || r.OK && verified {
		x.t.Errorf("%s: verify says %v, %v", what, r, err)
	}
	for _, f := range r.Findings {
		if f.Kind == "" || f.Where == "" || f.Expected == "" || f.Actual == "" || f.Fix == "" {
			x.t.Errorf("%s: a finding lacks something: %+v", what, f)
		}
	}
	in, err := Import(x.t.Context(), bytes.NewReader(data), x.store, ImportOptions{})
	if err == nil || len(in.Runs) > 0 {
		x.t.Fatalf("%s: import took %v", what, in)
	}
	if code := protocol.CodeOf(err); code != protocol.ErrCorrupt.Code && code != protocol.ErrVerify.Code && code != protocol.ErrInvalidBlock.Code {
		x.t.Errorf("%s: import says %q: %v", what, code, err)
	}
}

// untouched holds that the store has what it had.
func (x *tried) untouched() {
	x.t.Helper()
	if heads, size := x.kept(); heads != x.heads || size != x.size {
		x.t.Errorf("the store has %d bytes and %s, and had %d and %s", size, heads, x.size, x.heads)
	}
}

func TestF504EveryChangedByteOfAnArchiveIsFound(t *testing.T) {
	t.Parallel()
	for name, whole := range wholeArchives(t) {
		t.Run(name, func(t *testing.T) {
			x := newTried(t, openSample(t))
			rng := rand.New(rand.NewPCG(504, uint64(len(whole))))
			for at := range whole {
				masks := []byte{1, 2, 4, 8, 16, 32, 64, 128, 0xff, byte(1 + rng.IntN(255))}
				if at > 400 { // behind the header and some sections a bit is like another
					masks = []byte{1 << rng.IntN(8)}
				}
				if at > 400 && at%sparse(name) > 0 {
					continue
				}
				for _, mask := range masks {
					changed := bytes.Clone(whole)
					changed[at] ^= mask
					x.refused(fmt.Sprintf("byte %d ^ %#x", at, mask), changed, true)
				}
			}
			for range 500 {
				i, j := rng.IntN(len(whole)), rng.IntN(len(whole))
				if whole[i] == whole[j] {
					continue
				}
				changed := bytes.Clone(whole)
				changed[i], changed[j] = changed[j], changed[i]
				x.refused(fmt.Sprintf("bytes %d and %d exchanged", i, j), changed, true)
			}
			for at := range min(len(whole)-1, 200) { // in the header neighbours too
				if whole[at] == whole[at+1] {
					continue
				}
				changed := bytes.Clone(whole)
				changed[at], changed[at+1] = changed[at+1], changed[at]
				x.refused(fmt.Sprintf("bytes %d and %d exchanged", at, at+1), changed, true)
			}
			x.untouched()
		})
	}
}

// pieces are the sections of an archive with their lengths, the header first.
func pieces(t *testing.T, data []byte) (out [][]byte) {
	t.Helper()
	c, err := newCARReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	from := int64(0)
	for {
		out, from = append(out, data[from:c.offset]), c.offset
		if from == int64(len(data)) {
			return out
		}
		if _, _, err := c.next(); err != nil {
			t.Fatal(err)
		}
	}
}

// An archive that ends too early is refused wherever it ends, also by a store that has all of it but the end.
func TestF317AnArchiveThatEndsTooEarlyIsRefused(t *testing.T) {
	t.Parallel()
	for name, whole := range wholeArchives(t) {
		for _, has := range []string{"nothing", "all of it"} {
			t.Run(name+" into a store that has "+has, func(t *testing.T) {
				s := openSample(t)
				if has != "nothing" {
					if _, err := Import(t.Context(), bytes.NewReader(whole), s, ImportOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				x := newTried(t, s)
				at := 0
				for _, p := range pieces(t, whole) {
					if at += len(p); at < len(whole) {
						x.refused(fmt.Sprintf("cut between sections, at %d", at), whole[:at], true)
					}
				}
				for at := 0; at < len(whole); at += sparse(name) {
					x.refused(fmt.Sprintf("cut at %d", at), whole[:at], true)
				}
				x.untouched()
			})
		}
	}
}

func TestF504EverySectionOfAnArchiveHasItsPlace(t *testing.T) {
	t.Parallel()
	for name, whole := range wholeArchives(t) {
		t.Run(name, func(t *testing.T) {
			x := newTried(t, openSample(t))
			all := pieces(t, whole)
			rng := rand.New(rand.NewPCG(317, uint64(len(whole))))
			try := func(what string, sections ...[]byte) { x.refused(what, bytes.Join(sections, nil), true) }
			for i := range all {
				try(fmt.Sprintf("section %d removed", i), slices.Delete(slices.Clone(all), i, i+1)...)
				try(fmt.Sprintf("section %d doubled", i), slices.Insert(slices.Clone(all), i, all[i])...)
				try(fmt.Sprintf("section %d again at the end", i), append(slices.Clone(all), all[i])...)
				for range 4 {
					j := rng.IntN(len(all))
					moved := slices.Clone(all)
					if moved[i], moved[j] = moved[j], moved[i]; i != j {
						try(fmt.Sprintf("sections %d and %d exchanged", i, j), moved...)
					}
				}
				more := Raw([]byte("a block that nothing leads to"))
				try(fmt.Sprintf("a block before section %d", i+1), slices.Insert(slices.Clone(all), i+1, appendSection(nil, more.Link.Bytes(), more.Data))...)
			}
			x.untouched()
		})
	}
}

// What another program wrote may be whole, and is no run.
func TestF504AnArchiveWithoutARunIsNoTick(t *testing.T) {
	text := Raw([]byte("text"))
	record := must(Encode(map[string]any{"text": text.Link}))
	foreign := must(protocol.ParseLink("QmPRmYXoB2SaqFXkCeoX7ebPZG2ZuFoHCB9zHjaxCPFL3u"))
	for name, data := range map[string][]byte{
		"without roots":               carOf(nil, text),
		"empty":                       carOf(nil),
		"of one record":               carOf([]protocol.Link{record.Link}, record, text),
		"of two roots":                carOf([]protocol.Link{record.Link, text.Link}, record, text),
		"of a text":                   carOf([]protocol.Link{text.Link}, text),
		"of blocks of others":         carOf([]protocol.Link{foreign}, Block{foreign, []byte{0x0a, 0x00}}),
		"of a root that is not there": carOf([]protocol.Link{record.Link}, text),
	} {
		t.Run(name, func(t *testing.T) {
			x := newTried(t, openSample(t))
			x.refused(name, data, true)
			x.untouched()
			r, err := VerifyCAR(t.Context(), bytes.NewReader(data), VerifyOptions{})
			if err != nil || len(r.Findings) == 0 || name != "of a root that is not there" && !strings.Contains(fmt.Sprint(r.Findings), "roots") {
				t.Errorf("%v, %v", r.Findings, err)
			}
		})
	}
}

// An archive without a record of its runs, as early versions wrote it, is taken.
func TestAnArchiveWithoutNamesIsTaken(t *testing.T) {
	s := openSample(t)
	sampleRun(t, s, "one", 2)
	data, st := exported(t, s, "one")
	_, blocks, err := readCAR(data)
	if err != nil {
		t.Fatal(err)
	}
	old := carOf([]protocol.Link{st.Root}, blocks[:len(blocks)-1]...)
	if r, err := VerifyCAR(t.Context(), bytes.NewReader(old), VerifyOptions{}); err != nil || !r.OK {
		t.Errorf("%v, %v", r, err)
	}
	in, err := Import(t.Context(), bytes.NewReader(old), openSample(t), ImportOptions{})
	if err != nil || len(in.Runs) != 1 {
		t.Errorf("%v, %v", in, err)
	}
	x := newTried(t, openSample(t))
	at := 0
	for _, p := range pieces(t, old) {
		if at += len(p); at < len(old) {
			x.refused(fmt.Sprintf("cut at %d", at), old[:at], true)
		}
	}
	x.untouched()
}

// A block that a store has may be left out of an archive for it, in whatever place.
func TestAnArchiveWithoutWhatTheStoreHasIsTaken(t *testing.T) {
	s, into := openSample(t), openSample(t)
	sampleRun(t, s, "one", 2)
	data, _ := exported(t, s, "one")
	if _, err := Import(t.Context(), bytes.NewReader(data), into, ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	all := pieces(t, data)
	for i := 1; i < len(all)-1; i++ {
		less := bytes.Join(slices.Delete(slices.Clone(all), i, i+1), nil)
		if _, err := Import(t.Context(), bytes.NewReader(less), into, ImportOptions{}); err != nil {
			t.Errorf("without section %d: %v", i, err)
		}
		if _, err := Import(t.Context(), bytes.NewReader(less), openSample(t), ImportOptions{}); !errors.Is(err, protocol.ErrVerify) && !errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("without section %d, into a store that has nothing: %v", i, err)
		}
	}
}
