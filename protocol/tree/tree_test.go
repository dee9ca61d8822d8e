package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

// shelf is blocks in memory.
type shelf map[protocol.Link][]byte

func (s shelf) put(b Block) error { s[b.Link] = b.Data; return nil }

func (s shelf) read(l protocol.Link) ([]byte, error) {
	b, ok := s[l]
	if !ok {
		return nil, fmt.Errorf("%s: %w", l, protocol.ErrNotFound)
	}
	return b, nil
}

func (s shelf) dir(t testing.TB, entries ...Entry) protocol.Link {
	t.Helper()
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	blocks, err := Encode(entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		s[b.Link] = b.Data
	}
	return blocks[len(blocks)-1].Link
}

func (s shelf) file(t testing.TB, name string, content []byte) Entry {
	t.Helper()
	l, err := Content(bytes.NewReader(content), int64(len(content)), s.put)
	if err != nil {
		t.Fatal(err)
	}
	return Entry{Name: name, Mode: File, Link: l, Size: int64(len(content))}
}

func noise(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestAFileComesBackWholeAtEveryThreshold(t *testing.T) {
	for _, n := range []int{0, 1, PartMin - 1, PartMin, PartMin + 1, WholeMax - 1, WholeMax, WholeMax + 1, WholeMax + PartMin, 1 << 20, 1<<20 + 7} {
		for kind, content := range map[string][]byte{"noise": noise(n, uint64(n)), "zeros": make([]byte, n)} {
			s := shelf{}
			e := s.file(t, "f", content)
			if whole := isRaw(e.Link); whole != (n <= WholeMax) {
				t.Errorf("%d bytes of %s: one raw block is %v", n, kind, whole)
			}
			r, err := Open(s.read, e)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes of %s: read %d, %v", n, kind, len(got), err)
			}
			for _, at := range []int64{int64(n) - 3, 0, int64(n) / 2} {
				if at < 0 {
					continue
				}
				if _, err := r.Seek(at, io.SeekStart); err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content[at:]) {
					t.Errorf("%d bytes of %s from %d: read %d, %v", n, kind, at, len(got), err)
				}
			}
		}
	}
}

func TestPartsHaveTheSizesThatArePublished(t *testing.T) {
	content := noise(8<<20, 7)
	var sizes []int
	for rest := content; len(rest) > 0; {
		n := Cut(rest)
		if got := Cut(rest[:min(len(rest), PartMax)]); got != n {
			t.Fatalf("a part depends on what lies beyond %d bytes: %d and %d", PartMax, n, got)
		}
		sizes, rest = append(sizes, n), rest[n:]
	}
	for i, n := range sizes {
		if n > PartMax || n < PartMin && i < len(sizes)-1 {
			t.Errorf("part %d has %d bytes", i, n)
		}
	}
	if mean := len(content) / len(sizes); mean < 26<<10 || mean > 38<<10 {
		t.Errorf("parts have %d bytes on average", mean)
	}
}

// A byte that is put in changes the part that it lies in, and few behind it.
func TestAChangeOfALongFileChangesFewParts(t *testing.T) {
	before := noise(4<<20, 3)
	a, b := shelf{}, shelf{}
	a.file(t, "f", before)
	b.file(t, "f", slices.Insert(slices.Clone(before), 1<<20, 'x'))
	fresh := 0
	for l := range b {
		if a[l] == nil {
			fresh++
		}
	}
	if fresh > 6 {
		t.Errorf("%d of %d blocks are new", fresh, len(b))
	}
}

// The bytes are pinned: other programs cut and write the same.
func TestTheFormIsPinned(t *testing.T) {
	s := shelf{}
	long := s.file(t, "long", noise(200<<10, 5))
	root := s.dir(t, s.file(t, "a", []byte("text")), long, Entry{Name: "key", Mode: Omitted, Size: 7, Why: WhySecret},
		Entry{Name: "sub", Mode: Dir, Link: s.dir(t, Entry{Name: "l", Mode: Link, Link: protocol.RawLink([]byte("a")), Size: 1})})
	got := fmt.Sprintf("%016x %016x\n%s\n%s", gear()[0], gear()[255], long.Link, root)
	if got != pinned {
		t.Errorf("have\n%s\nwant\n%s", got, pinned)
	}
	j, err := dagcbor.ToJSON(s[root])
	if err != nil || !strings.Contains(string(j), `"why":"secret"`) {
		t.Errorf("%s, %v", j, err)
	}
}

const pinned = `00ea554346d7e939 c9294a7141f1f31f
bafyreihuietew7ajbyveoshsxvfha4t4oaszog4bjz3g7y65fmzzrvscui
bafyreigml5oxlnbsidyhyjaajfoayysdbkznpedwkjzdr3jxrklfgnjdie`

func names(n int) []Entry {
	out := make([]Entry, n)
	for i := range out {
		out[i] = Entry{Name: fmt.Sprintf("f%06d", i), Mode: File, Link: protocol.RawLink(nil)}
	}
	return out
}

func TestADirectoryIsSplitAboveItsThreshold(t *testing.T) {
	for _, n := range []int{0, 1, SplitAbove - 1, SplitAbove, SplitAbove + 1, 50_000} {
		s := shelf{}
		root := s.dir(t, names(n)...)
		if split := len(s) > 1; split != (n > SplitAbove) {
			t.Errorf("%d entries are %d blocks", n, len(s))
		}
		got, err := Entries(s.read, root)
		if err != nil || !slices.Equal(got, names(n)) {
			t.Errorf("%d entries: %d come back, %v", n, len(got), err)
		}
	}
	a, b := shelf{}, shelf{}
	a.dir(t, names(50_000)...)
	b.dir(t, append(names(50_000), Entry{Name: "f025000x", Mode: File, Link: protocol.RawLink(nil)})...)
	fresh := 0
	for l := range b {
		if a[l] == nil {
			fresh++
		}
	}
	if fresh != 2 { // the part and the root
		t.Errorf("one more name makes %d of %d blocks new", fresh, len(b))
	}
}

// Names can be chosen so that none ends a part, and so that all do.
func TestNamesThatWereChosenCannotMakeABlockTooLong(t *testing.T) {
	var never, always []Entry
	for i := 0; len(never) < 20_000 || len(always) < 30; i++ {
		e := Entry{Name: fmt.Sprintf("n%07d", i), Mode: File, Link: protocol.RawLink(nil)}
		if ends(e.Name) {
			always = append(always, e)
		} else if len(never) < 20_000 {
			never = append(never, e)
		}
	}
	s := shelf{}
	root := s.dir(t, never...)
	if got, err := Entries(s.read, root); err != nil || len(got) != len(never) || len(s) != 4 {
		t.Errorf("%d entries in %d blocks, %v", len(got), len(s), err)
	}
}

func TestADecoderTakesNoNameThatADirectoryCannotHave(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "/", "a\x00b", "\xff", ".git", ".GIT", ".Git", ".g\u200cit", "git~1", ".git. ", ".git:x", ".wf", ".WF", "wf~1", strings.Repeat("x", NameMax+1)} {
		e := Entry{Name: name, Mode: File, Link: protocol.RawLink(nil)}
		if _, err := Encode([]Entry{e}); !errors.Is(err, protocol.ErrInvalidBlock) {
			t.Errorf("%q is encoded: %v", name, err)
		}
		if _, err := Decode(encode(Node{Entries: []Entry{e}})); !errors.Is(err, protocol.ErrInvalidBlock) {
			t.Errorf("%q is decoded: %v", name, err)
		}
	}
	for _, name := range []string{".gitignore", ".github", "...", "a b", "ü", "\u202e", "-", "\\", "a\nb", strings.Repeat("x", NameMax)} {
		blocks, err := Encode([]Entry{{Name: name, Mode: File, Link: protocol.RawLink(nil)}})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if _, err := Decode(blocks[0].Data); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestADecoderTakesOneFormAlone(t *testing.T) {
	file, sub := protocol.RawLink([]byte("x")), record([]byte{0xa0}).Link
	bad := map[string]Node{
		"not sorted":        {Entries: []Entry{{Name: "b", Mode: File, Link: file}, {Name: "a", Mode: File, Link: file}}},
		"twice":             {Entries: []Entry{{Name: "a", Mode: File, Link: file}, {Name: "a", Mode: File, Link: file}}},
		"mode":              {Entries: []Entry{{Name: "a", Mode: "setuid", Link: file}}},
		"no link":           {Entries: []Entry{{Name: "a", Mode: File}}},
		"omitted, linked":   {Entries: []Entry{{Name: "a", Mode: Omitted, Link: file, Why: WhySecret}}},
		"omitted, no why":   {Entries: []Entry{{Name: "a", Mode: Omitted}}},
		"file with a why":   {Entries: []Entry{{Name: "a", Mode: File, Link: file, Why: WhySecret}}},
		"dir of raw":        {Entries: []Entry{{Name: "a", Mode: Dir, Link: file}}},
		"link of record":    {Entries: []Entry{{Name: "a", Mode: Link, Link: sub}}},
		"short file, parts": {Entries: []Entry{{Name: "a", Mode: File, Link: sub, Size: WholeMax}}},
		"long file, raw":    {Entries: []Entry{{Name: "a", Mode: File, Link: file, Size: WholeMax + 1}}},
		"negative":          {Entries: []Entry{{Name: "a", Mode: File, Link: file, Size: -1}}},
		"both":              {Entries: []Entry{{Name: "a", Mode: File, Link: file}}, Parts: []protocol.Link{sub}},
		"raw part":          {Parts: []protocol.Link{file}},
		"too many":          {Entries: names(partMax + 1)},
	}
	for what, n := range bad {
		if _, err := Decode(encode(n)); !errors.Is(err, protocol.ErrInvalidBlock) {
			t.Errorf("%s: %v", what, err)
		}
	}
	good := encode(Node{Entries: names(3)})
	if _, err := Decode(good); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		if _, err := Decode(good[:i]); err == nil {
			t.Fatalf("it is read when cut off at %d of %d", i, len(good))
		}
	}
	if _, err := Decode(append(slices.Clone(good), 0)); err == nil {
		t.Error("it is read with a byte more")
	}
	newer := bytes.Replace(good, []byte{0x61, 'v', 1}, []byte{0x61, 'v', 2}, 1)
	if _, err := Decode(newer); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("of another version: %v", err)
	}
}

func TestAFileRecordHoldsWhatItSays(t *testing.T) {
	part := protocol.RawLink([]byte("x"))
	for what, b := range map[string][]byte{
		"a short file":   encodeFile(WholeMax, []protocol.Link{part, part}),
		"too few parts":  encodeFile(3*PartMax, []protocol.Link{part, part}),
		"too many parts": encodeFile(WholeMax+1, slices.Repeat([]protocol.Link{part}, 10)),
		"no raw part":    encodeFile(2*PartMax, []protocol.Link{part, record(nil).Link}),
		"nothing":        encodeFile(0, nil),
	} {
		if _, _, err := DecodeFile(b); !errors.Is(err, protocol.ErrInvalidBlock) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Parts of other lengths than the record says are found when they are read.
	s := shelf{}
	for _, short := range []int{PartMax - 1, PartMax + 1} {
		one, two := Raw(make([]byte, PartMax)), Raw(make([]byte, short))
		top := record(encodeFile(2*PartMax, []protocol.Link{one.Link, two.Link}))
		for _, b := range []Block{one, two, top} {
			s[b.Link] = b.Data
		}
		r, err := Open(s.read, Entry{Name: "f", Mode: File, Link: top.Link, Size: 2 * PartMax})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); !errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("a part of %d bytes: %v", short, err)
		}
	}
}

func TestAFileThatChangesMeanwhileIsFound(t *testing.T) {
	for _, n := range []int{10, WholeMax + 10} {
		for _, size := range []int64{int64(n) - 1, int64(n) + 1} {
			_, err := Content(bytes.NewReader(make([]byte, n)), size, func(Block) error { return nil })
			if err != ErrChanged {
				t.Errorf("%d bytes where %d are due: %v", n, size, err)
			}
		}
	}
}

func TestWalkAndDiffGoThroughATree(t *testing.T) {
	s := shelf{}
	file := func(name, text string) Entry { return s.file(t, name, []byte(text)) }
	dir := func(name string, in ...Entry) Entry { return Entry{Name: name, Mode: Dir, Link: s.dir(t, in...)} }
	a := s.dir(t, file("a", "1"), dir("d", file("x", "1"), file("y", "1")), file("same", "1"), dir("t", file("in", "1")))
	b := s.dir(t, file("a", "2"), dir("d", file("y", "1"), file("z", "1")), file("same", "1"), file("t", "now a file"))
	var walked []string
	for it, err := range Walk(s.read, a) {
		if err != nil {
			t.Fatal(err)
		}
		walked = append(walked, it.Path)
	}
	if diff := cmp.Diff([]string{"a", "d/x", "d/y", "same", "t/in"}, walked); diff != "" {
		t.Error(diff)
	}
	var changes []string
	for c, err := range Diff(s.read, a, b) {
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, fmt.Sprintf("%s %s→%s", c.Path, c.Before.Mode, c.After.Mode))
	}
	if diff := cmp.Diff([]string{"a file→file", "d/x file→", "d/z →file", "t/in file→", "t dir→", "t →file"}, changes); diff != "" {
		t.Error(diff)
	}
	if e, err := Find(s.read, a, "d/y"); err != nil || e.Size != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	for _, path := range []string{"none", "a/b", "d/none", "", "d//y", "d/../a"} {
		if _, err := Find(s.read, a, path); !errors.Is(err, protocol.ErrUnknownArtifact) {
			t.Errorf("%q: %v", path, err)
		}
	}
	for it, err := range Walk(s.read, a) {
		_ = it
		if err != nil {
			t.Error(err)
		}
		break // it stops without an error
	}
}

// A few blocks that name each other stand for more entries than there can be.
func TestAWalkIsBounded(t *testing.T) {
	s := shelf{}
	at := s.dir(t, names(100)...)
	for range 30 {
		var in []Entry
		for i := range 100 {
			in = append(in, Entry{Name: fmt.Sprintf("d%02d", i), Mode: Dir, Link: at})
		}
		at = s.dir(t, in...)
	}
	n := 0
	var last error
	for _, err := range Walk(s.read, at) {
		n, last = n+1, err
	}
	if !errors.Is(last, protocol.ErrInvalidBlock) || n > WalkMax+1 {
		t.Errorf("%d entries, %v", n, last)
	}
	for range DepthMax {
		at = s.dir(t, Entry{Name: "d", Mode: Dir, Link: at})
	}
	for _, err := range Walk(s.read, at) {
		if !errors.Is(err, errTooDeep) {
			t.Errorf("%v", err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	s := shelf{}
	s.dir(f, s.file(f, "a", []byte("x")), s.file(f, "long", make([]byte, 100<<10)), Entry{Name: "k", Mode: Omitted, Why: WhySize, Size: 1 << 40})
	s.dir(f, names(SplitAbove + 1)[:30]...)
	for _, b := range s {
		if len(b) < 4096 {
			f.Add(b)
		}
	}
	f.Add(encode(Node{Parts: []protocol.Link{record(nil).Link}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, err := Decode(data); err == nil {
			if !bytes.Equal(encode(n), data) {
				t.Errorf("%x is read, and written otherwise", data)
			}
			if err := dagcbor.Check(data); err != nil {
				t.Errorf("%x is no strict DAG-CBOR: %v", data, err)
			}
		}
		if size, parts, err := DecodeFile(data); err == nil && !bytes.Equal(encodeFile(size, parts), data) {
			t.Errorf("%x is read, and written otherwise", data)
		}
	})
}

func BenchmarkContent(b *testing.B) {
	content := noise(64<<20, 1)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		if _, err := Content(bytes.NewReader(content), int64(len(content)), func(Block) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
