package words

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
	"wf/service/query"
)

// said is a document as a test knows it.
type said struct {
	unit string
	doc
	words []string
}

// drawn are documents of units with words of few letters, so that some are in all of them and some in one.
func drawn(rng *rand.Rand, units, docs int) (out []said) {
	for u := range units {
		for d := range docs {
			s := said{unit: fmt.Sprint("R", u), doc: doc{protocol.Seq(d/2 + 1), kind(d % 2)}, words: []string{"all"}}
			for range rng.IntN(20) {
				s.words = append(s.words, strings.Repeat(string(rune('a'+rng.IntN(4))), 1+rng.IntN(3))+string(rune('a'+rng.IntN(26))))
			}
			out = append(out, s)
		}
	}
	return out
}

func built(all []said) *builder {
	b := &builder{}
	for _, s := range all {
		if n := len(b.units); n == 0 || b.units[n-1].id != s.unit {
			b.begin(unit{id: s.unit})
		}
		b.units[len(b.units)-1].seq = s.seq
		b.text(s.seq, s.kind, strings.Join(s.words, " "))
	}
	return b
}

// matched are the documents of a segment that fit, as unit, event and kind.
func matched(t *testing.T, s *segment, data []byte, w api.Wanted) (out []string) {
	t.Helper()
	m, err := s.match(bytes.NewReader(data), w)
	if err != nil {
		t.Fatal(err)
	}
	for d := range s.docs {
		if m.has(uint32(d)) {
			out = append(out, fmt.Sprint(s.units[s.unitOf(uint32(d))].id, s.docs[d]))
		}
	}
	return out
}

func fitting(all []said, w api.Wanted) (out []string) {
	for _, s := range all {
		if slices.ContainsFunc(s.words, w.Fits) {
			out = append(out, fmt.Sprint(s.unit, s.doc))
		}
	}
	return out
}

// asked are words of all kinds: in all documents, in some, in none.
func asked() (out []api.Wanted) {
	for _, w := range []string{"all", "a", "aa", "ab", "abc", "bbbz", "c", "dddd", "e", "zz", "al", "allx"} {
		out = append(out, api.Wanted{Word: w}, api.Wanted{Word: w, Prefix: true})
	}
	return out
}

// What is read from a segment is what was put into it: few documents, and so many that blocks and bits are needed.
func TestASegmentFindsWhatIsInIt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 7, 8, 9, 63, 64, 65, 700} {
		all := drawn(rng, n, 1+rng.IntN(9))
		data := built(all).encode([]byte("key"))
		s, err := readSegment(bytes.NewReader(data), []byte("key"))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range asked() {
			if got, want := matched(t, s, data, w), fitting(all, w); !slices.Equal(got, want) {
				t.Errorf("%d units: %+v stands in %d documents, want %d", n, w, len(got), len(want))
			}
		}
	}
}

// Segments that are joined find the same, with the parts of a unit as one; what is dropped leaves nothing.
func TestJoinedSegmentsFindTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	all := drawn(rng, 40, 6)
	var parts [3][]said // by event
	for _, s := range all {
		parts[s.seq-1] = append(parts[s.seq-1], s)
	}
	var segs []*segment
	for i, p := range parts {
		b := built(p)
		for j := range b.units {
			b.units[j].from = protocol.Seq(i)
		}
		data := b.encode(nil)
		s, err := readSegment(bytes.NewReader(data), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.memo = data
		segs = append(segs, s)
	}
	slices.Reverse(segs)
	for _, dropped := range []string{"", "R7"} {
		var b builder
		if err := b.merge(segs, map[string]bool{dropped: true}, func(each func(int, io.ReaderAt) error) error {
			for i, s := range segs {
				if err := each(i, bytes.NewReader(s.memo)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		data := b.encode(nil)
		s, err := readSegment(bytes.NewReader(data), nil)
		if err != nil {
			t.Fatal(err)
		}
		left := slices.DeleteFunc(slices.Clone(all), func(s said) bool { return s.unit == dropped })
		for _, u := range s.units {
			if u.from != 0 || u.seq != 3 {
				t.Errorf("%s has the events %d to %d", u.id, u.from, u.seq)
			}
		}
		for _, w := range asked() {
			got, want := matched(t, s, data, w), fitting(left, w)
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Errorf("without %q: %+v stands in %d documents, want %d", dropped, w, len(got), len(want))
			}
		}
	}
}

// Each byte that is changed is seen, and so is each that is missing.
func TestADamagedSegmentIsNotTaken(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	all := drawn(rng, 30, 3)
	data := built(all).encode([]byte("key"))
	read := func(data []byte, key string) error {
		s, err := readSegment(bytes.NewReader(data), []byte(key))
		if err == nil {
			err = s.words(bytes.NewReader(data), "", func(string, func(func(uint32))) bool { return true })
		}
		return err
	}
	if err := read(data, "key"); err != nil {
		t.Fatal(err)
	}
	if err := read(data, "that of another user"); !errors.Is(err, errDamaged) {
		t.Errorf("sealed by another user: %v", err)
	}
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 1 << rng.IntN(8)
		if err := read(bad, "key"); !errors.Is(err, errDamaged) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if err := read(data[:i], "key"); err == nil {
			t.Errorf("cut off behind %d bytes: taken", i)
		}
	}
}

// What is sealed and makes no sense all the same is an error, and no panic.
func FuzzSegment(f *testing.F) {
	data := built(drawn(rand.New(rand.NewPCG(7, 8)), 3, 3)).encode(nil)
	f.Add(data[headStart:], 20, "a")
	f.Fuzz(func(t *testing.T, rest []byte, head int, w string) {
		head = max(0, min(head, len(rest)))
		data := append([]byte(segMagic), byte(head>>24), byte(head>>16), byte(head>>8), byte(head))
		data = append(append(data, seal(nil, string(rest[:head]))...), rest...)
		s, err := readSegment(bytes.NewReader(data), nil)
		if err != nil {
			return
		}
		for i := range s.index {
			x := &s.index[i]
			x.sum = sumOf(data[min(x.at, len(data)):min(x.at+x.size, len(data))]) // a block may lie behind the end
		}
		if _, err := s.match(bytes.NewReader(data), api.Wanted{Word: w, Prefix: true}); err != nil && !errors.Is(err, errDamaged) {
			t.Error(err)
		}
	})
}

// manual is text as models write it and read it.
func manual(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, pattern := range []string{"../../docs/*.md", "../../engine/*.go", "../../cas/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(text)
		}
	}
	return b.String()
}

// The index takes at most 0.7 of the texts: of one run with few of them, and of many runs, with texts short and long.
func TestAnIndexIsSmallerThanItsTexts(t *testing.T) {
	text := manual(t)
	for _, c := range []struct {
		runs, texts, size int
		most              float64
	}{{1, 20, 1500, 0.7}, {20, 10, 100, 0.7}, {100, 10, 500, 0.4}, {300, 10, 2000, 0.25}} {
		rng := rand.New(rand.NewPCG(9, 10))
		var b builder
		for r := range c.runs {
			b.begin(unit{id: fmt.Sprintf("RUN%07d", r), head: strings.Repeat("h", 36), seq: protocol.Seq(c.texts)})
			for i := range c.texts {
				n := c.size/2 + rng.IntN(c.size)
				at := rng.IntN(len(text) - n)
				b.text(protocol.Seq(i+1), ofAnswer, fmt.Sprintf("%s %08x", text[at:at+n], rng.Uint32()))
			}
		}
		size := len(b.encode(nil))
		if part := float64(size) / float64(b.texts); part > c.most {
			t.Errorf("%d runs with %d texts of about %d bytes: %.2f of %d bytes, want at most %.2f", c.runs, c.texts, c.size, part, b.texts, c.most)
		} else {
			t.Logf("%d runs with %d texts of about %d bytes: %.2f of %d bytes", c.runs, c.texts, c.size, part, b.texts)
		}
	}
}

// A commit of many runs that say little has a length that is read.
func TestSmallRunsFillASegment(t *testing.T) {
	b := &builder{}
	for i := 0; !b.full(); i++ {
		b.begin(unit{id: fmt.Sprintf("RUN%07d", i), head: strings.Repeat("h", 36), seq: 1, facts: query.Facts{Description: strings.Repeat("d", 1<<10)}})
		b.text(1, ofTitle, "x")
	}
	if n := len(b.encode(key())); n > segMost/2 {
		t.Errorf("%d units make a segment of %d bytes; one of more than %d is not read", len(b.units), n, segMost)
	}
}

// Of each text the first 64 KiB are indexed, and no part of a character.
func TestALongTextIsCut(t *testing.T) {
	for _, c := range []struct {
		before int
		found  bool
	}{{textMax - 6, true}, {textMax - 5, false}, {textMax, false}} {
		b := &builder{}
		b.begin(unit{id: "R"})
		b.text(1, ofAnswer, strings.Repeat(" ", c.before)+"zeppéln")
		_, whole := b.words["zeppéln"]
		if whole {
			t.Errorf("%d: a word that is cut off is indexed whole", c.before)
		}
		if part := slices.Collect(maps.Keys(b.words)); c.found != slices.Contains(part, "zeppé") {
			t.Errorf("%d bytes before: %q", c.before, part)
		}
	}
}
