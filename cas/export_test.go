package cas

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

func exported(t testing.TB, s *Store, run protocol.RunID) ([]byte, Stats) {
	t.Helper()
	var out bytes.Buffer
	st, err := Export(t.Context(), &out, s, ExportOptions{}, run)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), st
}

func TestExportWritesTheHeadFirstAndEveryBlockOnce(t *testing.T) {
	s := openSample(t)
	j := sampleRun(t, s, "one", 4)
	head, _ := j.Head()
	data, st := exported(t, s, "one")
	roots, blocks, err := readCAR(data)
	if err != nil {
		t.Fatal(err)
	}
	record := must(Encode(protocol.Archive{Kind: protocol.KindArchive, V: 1, Runs: []protocol.ArchivedRun{{Run: "one", Head: head, Seq: 14}}}))
	if len(roots) != 2 || roots[0] != head || roots[1] != record.Link || blocks[0].Link != head || st.Root != head || st.Runs != 1 {
		t.Errorf("roots %v, first %s, stats %+v; the head is %s", roots, blocks[0].Link, st, head)
	}
	if st.Blocks != int64(len(blocks)) || st.Bytes != int64(len(data)) {
		t.Errorf("stats %+v for %d blocks in %d bytes", st, len(blocks), len(data))
	}
	seen := map[protocol.Link]bool{}
	named := map[protocol.Link]bool{head: true, record.Link: true}
	last := protocol.Seq(1 << 40)
	for _, b := range blocks {
		if seen[b.Link] || !named[b.Link] {
			t.Errorf("block %s: twice %v, named before %v", b.Link, seen[b.Link], named[b.Link])
		}
		seen[b.Link] = true
		if b.Link.CID().Type() != 0x71 {
			continue
		}
		scan := dagcbor.Scan{Walk: dagcbor.Walk{B: b.Data}}
		scan.OnLink = func(c []byte, _ int) { named[must(protocol.CastLink(c))] = true }
		if err := scan.Run(); err != nil {
			t.Error(err)
		}
		var e protocol.Event
		if err := Decode(b.Data, &e); err == nil && e.Kind == protocol.KindEvent {
			if e.Seq >= last {
				t.Errorf("event %d after event %d", e.Seq, last)
			}
			last = e.Seq
		}
	}
	if len(named) != len(seen) || last != 1 {
		t.Errorf("%d of %d named blocks; oldest event %d", len(seen), len(named), last)
	}
	again, _ := exported(t, s, "one")
	if !bytes.Equal(data, again) {
		t.Error("exported twice, the archives differ")
	}
	if _, err := Export(t.Context(), io.Discard, s, ExportOptions{}, "none"); !errors.Is(err, protocol.ErrUnknownRun) {
		t.Errorf("an unknown run: %v", err)
	}
}

func TestImportBringsARunToAnotherStore(t *testing.T) {
	s := openSample(t)
	j := sampleRun(t, s, "one", 4)
	head, seq := j.Head()
	data, st := exported(t, s, "one")
	into := openSample(t)
	in, err := Import(t.Context(), bytes.NewReader(data), into, ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Runs) != 1 || in.Runs[0] != "one" || in.Blocks != st.Blocks || in.Roots[0] != head {
		t.Fatalf("imported %+v", in)
	}
	if h, err := into.Head(t.Context(), protocol.RunHead(in.Runs[0])); err != nil || h.Link != head || h.Seq != seq {
		t.Errorf("head %+v, %v", h, err)
	}
	again, _ := exported(t, into, in.Runs[0])
	if !bytes.Equal(data, again) {
		t.Error("exported from the other store, the archive differs")
	}
	r, err := Verify(t.Context(), into, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, r)
	// Once more changes nothing; under another name it is another head on the same events.
	for _, o := range []ImportOptions{{}, {Run: "copy"}} {
		if _, err := Import(t.Context(), bytes.NewReader(data), into, o); err != nil {
			t.Errorf("import %+v again: %v", o, err)
		}
	}
	sampleRun(t, into, "taken", 1)
	if _, err := Import(t.Context(), bytes.NewReader(data), into, ImportOptions{Run: "taken"}); !errors.Is(err, protocol.ErrHeadMoved) {
		t.Errorf("over another run: %v", err)
	}
}

// The longest block that a store takes passes an archive; a longer one is refused before anything
// is written.
func TestWhateverIsStoredCanBeExported(t *testing.T) {
	s := openSample(t)
	longest, longer := Raw(make([]byte, BlockMax)), Raw(make([]byte, BlockMax+1))
	if err := s.Commit(t.Context(), Batch{Blocks: []Block{longer}}); !errors.Is(err, protocol.ErrInvalidBlock) {
		t.Errorf("a block of %d bytes: %v", len(longer.Data), err)
	}
	j, err := s.Journal(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(t.Context(), 1, []Draft{{Data: protocol.RunStarted{Start: longest.Link, Source: longest.Link}}}, []Block{longest}); err != nil {
		t.Fatal(err)
	}
	data, _ := exported(t, s, "one")
	into := openSample(t)
	if _, err := Import(t.Context(), bytes.NewReader(data), into, ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := into.Block(t.Context(), longest.Link); err != nil || len(got) != BlockMax {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestVerifyFindsChunksThatDoNotAddUp(t *testing.T) {
	s := openSample(t)
	part, first := Raw([]byte("abc")), Raw(make([]byte, protocol.ChunkSize))
	lie := must(Encode(protocol.Chunks{Kind: protocol.KindChunks, V: 1, Size: protocol.ChunkSize + 4, Parts: []protocol.Link{first.Link, part.Link}}))
	j, err := s.Journal(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(t.Context(), 1, []Draft{{Data: protocol.RunStarted{Start: part.Link, Source: lie.Link}}}, []Block{first, part, lie}); err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), s, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, r, "record")
	wantWhere(t, r, "one/1/data.source")
}

// A run that is there already goes on, or stays as it is, but never changes its history.
func TestImportOfARunThatIsThere(t *testing.T) {
	long, short := openSample(t), openSample(t)
	sampleRun(t, long, "one", 3)
	var archives [][]byte
	for _, seq := range []protocol.Seq{4, 7, 11} { // the same run, exported while it went on
		var at protocol.Entry
		for x, err := range long.After(t.Context(), "one", seq-1) {
			if err != nil {
				t.Fatal(err)
			}
			at = x
			break
		}
		part := openSample(t)
		data, _ := exported(t, long, "one")
		if _, err := Import(t.Context(), bytes.NewReader(data), part, ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		setHead(t, part, Head{Name: "run/one", Link: at.CID, Seq: at.Seq, TS: at.TS})
		data, _ = exported(t, part, "one")
		archives = append(archives, data)
	}
	in := func(data []byte) (Imported, Head) {
		t.Helper()
		got, err := Import(t.Context(), bytes.NewReader(data), short, ImportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := short.Head(t.Context(), "run/one")
		if err != nil {
			t.Fatal(err)
		}
		return got, h
	}
	if got, h := in(archives[0]); h.Seq != 4 || len(got.Held)+len(got.Forwarded) > 0 {
		t.Errorf("new: %+v at %d", got, h.Seq)
	}
	if got, h := in(archives[1]); h.Seq != 7 || len(got.Forwarded) != 1 || len(got.Held) > 0 {
		t.Errorf("further: %+v at %d", got, h.Seq)
	}
	for i, data := range archives[:2] {
		if got, h := in(data); h.Seq != 7 || len(got.Held) != 1 || len(got.Forwarded) > 0 {
			t.Errorf("archive %d again: %+v at %d", i, got, h.Seq)
		}
	}
	if got, h := in(archives[2]); h.Seq != 11 || len(got.Forwarded) != 1 {
		t.Errorf("further: %+v at %d", got, h.Seq)
	}
	other := openSample(t)
	sampleRunOf(t, other, "one", 3, func(int) string { return "something else" })
	data, _ := exported(t, other, "one")
	_, err := Import(t.Context(), bytes.NewReader(data), short, ImportOptions{})
	if !errors.Is(err, protocol.ErrHeadMoved) || !strings.Contains(err.Error(), "another run one") {
		t.Errorf("another history: %v", err)
	}
	if got, err := Import(t.Context(), bytes.NewReader(data), short, ImportOptions{Run: "beside"}); err != nil || got.Runs[0] != "beside" {
		t.Errorf("under another name: %+v, %v", got, err)
	}
	r, err := Verify(t.Context(), short, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, r)
}

// An archive with the runs of sub-workflows brings all of them, under their own ids.
func TestAnArchiveHoldsChildren(t *testing.T) {
	s := openSample(t)
	for _, id := range []protocol.RunID{"parent", "child", "other"} {
		sampleRun(t, s, id, 2)
	}
	var out bytes.Buffer
	st, err := Export(t.Context(), &out, s, ExportOptions{}, "parent", "child")
	if err != nil || st.Runs != 2 {
		t.Fatalf("%+v, %v", st, err)
	}
	if counted, err := CountCAR(bytes.NewReader(out.Bytes())); err != nil || counted != st {
		t.Errorf("counted are %+v of %+v, %v", counted, st, err)
	}
	if _, err := CountCAR(bytes.NewReader(out.Bytes()[:out.Len()-1])); err == nil {
		t.Error("an archive without its last byte is counted")
	}
	r, err := VerifyCAR(t.Context(), bytes.NewReader(out.Bytes()), VerifyOptions{})
	if err != nil || r.Checked.Events != 16 {
		t.Errorf("%d events, %v", r.Checked.Events, err)
	}
	wantKinds(t, r)
	into := openSample(t)
	in, err := Import(t.Context(), bytes.NewReader(out.Bytes()), into, ImportOptions{})
	if err != nil || len(in.Runs) != 1 || in.Runs[0] != "parent" || len(in.Children) != 1 || in.Children[0] != "child" {
		t.Errorf("%+v, %v", in, err)
	}
	if _, err := Export(t.Context(), io.Discard, s, ExportOptions{}, "parent", "nobody"); !errors.Is(err, protocol.ErrUnknownRun) {
		t.Errorf("a child that is not there: %v", err)
	}
}

// An archive without a record of names, as it was written before there was one, comes in under a
// name made from its head; a record that lies is refused.
func TestTheRecordOfAnArchiveIsChecked(t *testing.T) {
	s := openSample(t)
	j := sampleRun(t, s, "one", 2)
	head, seq := j.Head()
	data, _ := exported(t, s, "one")
	_, blocks, err := readCAR(data)
	if err != nil {
		t.Fatal(err)
	}
	blocks = blocks[:len(blocks)-1] // without the record
	archive := func(names ...protocol.ArchivedRun) []byte {
		roots, all := []protocol.Link{head}, blocks
		if names != nil {
			b := must(Encode(protocol.Archive{Kind: protocol.KindArchive, V: 1, Runs: names}))
			roots, all = append(roots, b.Link), append(all[:len(all):len(all)], b)
		}
		return carOf(roots, all...)
	}
	in, err := Import(t.Context(), bytes.NewReader(archive()), openSample(t), ImportOptions{})
	if err != nil || len(in.Runs) != 1 || in.Runs[0] != derivedID(head) {
		t.Errorf("without a record: %+v, %v", in, err)
	}
	one := protocol.ArchivedRun{Run: "one", Head: head, Seq: seq}
	for what, lie := range map[string][]protocol.ArchivedRun{
		"root 1/runs[0].run":  {{Run: "../one", Head: head, Seq: seq}},
		"root 1/runs[0].head": {{Run: "one", Head: blocks[1].Link, Seq: seq}},
		"root 1/runs[0].seq":  {{Run: "one", Head: head, Seq: seq + 1}},
		"root 1/runs[1].run":  {one, one},
	} {
		r, err := VerifyCAR(t.Context(), bytes.NewReader(archive(lie...)), VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wantKinds(t, r, "archive")
		wantWhere(t, r, what)
		into := openSample(t)
		if _, err := Import(t.Context(), bytes.NewReader(archive(lie...)), into, ImportOptions{}); !errors.Is(err, protocol.ErrVerify) {
			t.Errorf("%s: %v", what, err)
		}
		if heads, err := into.Heads(t.Context(), ""); err != nil || len(heads) > 0 {
			t.Errorf("%s: heads %v, %v", what, heads, err)
		}
	}
}

// What is no sound run leaves a store as it was, however the archive comes in: not a block of it is kept.
func TestAnArchiveThatIsNotWholeLeavesNothing(t *testing.T) {
	s := openSample(t)
	big := Raw(bytes.Repeat([]byte("x"), 3*importBatch))
	j, err := s.Journal(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(t.Context(), 1, []Draft{{Data: protocol.RunStarted{Start: big.Link, Source: big.Link}}}, []Block{big}); err != nil {
		t.Fatal(err)
	}
	data, _ := exported(t, s, "one")
	flipped := bytes.Clone(data)
	flipped[len(flipped)-40] ^= 1
	broken := errors.New("the connection broke off")
	for what, archive := range map[string]io.Reader{
		"cut in a file":     bytes.NewReader(data[:len(data)-100]),
		"cut in a pipe":     io.MultiReader(bytes.NewReader(data[:len(data)-100])),
		"flipped in a file": bytes.NewReader(flipped),
		"flipped in a pipe": io.MultiReader(bytes.NewReader(flipped)),
		"broken off":        io.MultiReader(bytes.NewReader(data[:len(data)-100]), iotest.ErrReader(broken)),
	} {
		into := openSample(t)
		before := listed(t, into)
		if _, err := Import(t.Context(), archive, into, ImportOptions{}); !errors.Is(err, protocol.ErrCorrupt) && !errors.Is(err, broken) {
			t.Errorf("%s: %v", what, err)
		}
		r, err := Verify(t.Context(), into, VerifyOptions{All: true})
		if err != nil || r.Checked.Blocks != 0 {
			t.Errorf("%s: %d blocks are left, %v", what, r.Checked.Blocks, err)
		}
		if d := cmp.Diff(before, listed(t, into)); d != "" {
			t.Errorf("%s: files are left:\n%s", what, d)
		}
	}
	into := openSample(t)
	if _, err := Import(t.Context(), io.MultiReader(bytes.NewReader(data)), into, ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if again, _ := exported(t, into, "one"); !bytes.Equal(again, data) {
		t.Error("a pipe brought another archive")
	}
}

// listed are the files of a store, but for its locks.
func listed(t *testing.T, s *Store) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != dirRuns {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestImportOfADamagedArchiveMakesNoHead(t *testing.T) {
	s := openSample(t)
	sampleRun(t, s, "one", 2)
	data, _ := exported(t, s, "one")
	into := openSample(t)
	noHead := func(what string, data []byte, want error) {
		t.Helper()
		if _, err := Import(t.Context(), bytes.NewReader(data), into, ImportOptions{}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if heads, err := into.Heads(t.Context(), ""); err != nil || len(heads) > 0 {
			t.Errorf("%s: heads %v, %v", what, heads, err)
		}
	}
	for at := 0; at < len(data); at += len(data)/40 + 1 {
		bad := bytes.Clone(data)
		bad[at] ^= 0x10
		noHead("a flipped byte", bad, protocol.ErrCorrupt)
	}
	noHead("cut in a block", data[:len(data)/2], protocol.ErrCorrupt)

	// Leaving a block out keeps every hash right.
	roots, blocks, err := readCAR(data)
	if err != nil {
		t.Fatal(err)
	}
	fresh := openSample(t)
	half := len(blocks) / 2
	less := carOf(roots, slices.Delete(blocks, half, half+1)...)
	if _, err := Import(t.Context(), bytes.NewReader(less), fresh, ImportOptions{}); !errors.Is(err, protocol.ErrVerify) {
		t.Errorf("a block left out: %v", err)
	}
}

func TestImportRefusesBlocksOfOtherSystems(t *testing.T) {
	foreign := must(protocol.ParseLink("QmPRmYXoB2SaqFXkCeoX7ebPZG2ZuFoHCB9zHjaxCPFL3u")) // a dag-pb node without links
	archive := carOf(nil, Block{foreign, []byte{0x0a, 0x00}})
	if _, err := Import(t.Context(), bytes.NewReader(archive), openSample(t), ImportOptions{}); !errors.Is(err, errForeign) || errors.Is(err, protocol.ErrCorrupt) || protocol.CodeOf(err) != protocol.ErrInvalidBlock.Code {
		t.Errorf("a dag-pb block, which is none of ours and not damaged: %v", err)
	}
}

func TestVerifyCARNamesTheFault(t *testing.T) {
	s := openSample(t)
	sampleRun(t, s, "one", 3)
	data, st := exported(t, s, "one")
	verify := func(data []byte, o VerifyOptions) Report {
		t.Helper()
		r, err := VerifyCAR(t.Context(), bytes.NewReader(data), o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	clean := verify(data, VerifyOptions{Run: "one", Head: st.Root})
	wantKinds(t, clean)
	if clean.Checked.Events != 11 || clean.Checked.Blocks != st.Blocks {
		t.Errorf("checked %+v", clean.Checked)
	}
	for at := 0; at < len(data); at += 7919 {
		bad := bytes.Clone(data)
		bad[at] ^= 0x10
		if r := verify(bad, VerifyOptions{}); r.OK {
			t.Errorf("byte %d flipped: clean", at)
		}
	}
	at := bytes.Index(data, []byte("run one, visit 1:")) // the output of the first visit
	bad := bytes.Clone(data)
	bad[at] = 'R'
	r := verify(bad, VerifyOptions{Run: "one"})
	wantKinds(t, r, "corrupt")
	wantWhere(t, r, "one/4/data.record.output")
	wantKinds(t, verify([]byte("no archive"), VerifyOptions{}), "archive")
	wantKinds(t, verify(data, VerifyOptions{Run: "one", Head: Raw(nil).Link}), "rolled_back")
	if s := strings.Join(clean.NotProven, "\n"); !strings.Contains(s, "no reflog") {
		t.Errorf("not proven: %q", s)
	}
}

func TestVerifyOfAVeryDeepArchiveDoesNotOverflow(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector, and nothing in it runs at once")
	}
	last := must(Encode(map[string]any{"end": true}))
	blocks := []Block{last}
	for range 200_000 {
		last = must(Encode([]protocol.Link{last.Link}))
		blocks = append(blocks, last)
	}
	archive := carOf([]protocol.Link{last.Link}, blocks...)
	r, err := VerifyCAR(t.Context(), bytes.NewReader(archive), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, r, "archive") // it holds nothing of ours, and is read to its end
}

// BenchmarkVerify verifies a store of small steps, where records are most of the bytes, and
// one of long texts.
func BenchmarkVerify(b *testing.B) {
	for name, size := range map[string]int{"512B": 512, "32KiB": 32 << 10} {
		b.Run(name, func(b *testing.B) {
			s := openSample(b)
			text := randomText(size + 600)
			sampleRunOf(b, s, "one", 600, func(i int) string { return text[i : i+size] })
			b.ResetTimer()
			var bytes int64
			for b.Loop() {
				r, err := Verify(b.Context(), s, VerifyOptions{})
				if err != nil || !r.OK {
					b.Fatal(err, r.Findings)
				}
				bytes += r.Checked.Bytes
			}
			b.ReportMetric(float64(bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
		})
	}
}
