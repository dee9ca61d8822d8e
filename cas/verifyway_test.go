package cas

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// absent is a link to a block that is nowhere.
func absent(name string) protocol.Link { return Raw([]byte("absent: " + name)).Link }

// oneStep writes the run "two", whose only step links to what data and output are; the blocks
// of it are stored.
func oneStep(t *testing.T, data, output protocol.Link, blocks ...Block) Report {
	t.Helper()
	s := openSample(t)
	j, err := s.Journal(t.Context(), "two")
	if err != nil {
		t.Fatal(err)
	}
	start := must(Encode(protocol.Start{Kind: protocol.KindStart, V: 1, Workflow: Raw(nil).Link, Inputs: Raw(nil).Link, Format: 1, Semantics: 1}))
	record := must(Encode(protocol.StepRecord{Kind: protocol.KindStep, V: 1, Start: start.Link, Parents: []protocol.Link{start.Link},
		Role: "x", Visit: 1, Data: data, Output: output, Status: protocol.StepOK}))
	_, err = j.Append(t.Context(), 1, []Draft{
		{Data: protocol.RunStarted{Start: start.Link, Source: Raw(nil).Link}},
		{Step: "x#1", Data: protocol.StepCompleted{Record: record.Link, Status: protocol.StepOK}},
	}, append(blocks, Raw(nil), start, record))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), s, VerifyOptions{Run: "two"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// F-73: behind a block that is missing, or was met before, verify goes on.
func TestEveryMissingBlockOfARecordIsNamed(t *testing.T) {
	r := oneStep(t, absent("data"), absent("output"))
	wantKinds(t, r, "missing")
	wantWhere(t, r, "two/2/data.record.data")
	wantWhere(t, r, "two/2/data.record.output")
	if len(r.Findings) != 2 {
		t.Errorf("findings %v", r.Findings)
	}
}

func TestBehindABlockThatIsNotStrictVerifyGoesOn(t *testing.T) {
	long := []byte{0x18, 1} // 1 in two bytes
	sum := sha256.Sum256(long)
	loose := Block{Link: linkOf(cid.DagCBOR, sum[:]), Data: long}
	r := oneStep(t, loose.Link, absent("output"), loose)
	wantKinds(t, r, "not_strict", "missing")
	wantWhere(t, r, "two/2/data.record.data")
	wantWhere(t, r, "two/2/data.record.output")
}

// F-73: where a block is missing is told by the fields that lead to it; of a long way both ends.
func TestAWayIsToldByItsFields(t *testing.T) {
	way := func(link protocol.Link, hops int) (top protocol.Link, blocks []Block) {
		for range hops {
			b := must(Encode(map[string]any{"all": []any{1, map[string]any{"of": "it", "to": link}, 2}, "z": "end"}))
			link, blocks = b.Link, append(blocks, b)
		}
		return link, blocks
	}
	for hops, want := range map[int]string{
		1: "data.record.data.all[1].to",
		2: "data.record.data.all[1].to.all[1].to",
		9: "data.record.data.all[1].to.all[1].to.….all[1].to.all[1].to.all[1].to.all[1].to",
	} {
		top, blocks := way(absent("end"), hops)
		r := oneStep(t, top, protocol.Link{}, blocks...)
		wantKinds(t, r, "missing")
		wantWhere(t, r, "two/2/"+want)
	}
}

// appended writes the sample run of three visits, and behind its end an event that links to prev,
// with a link in a field that a later version may add.
func appended(t *testing.T, prev func(head protocol.Link) protocol.Link, voucher protocol.Link, blocks ...Block) *Store {
	t.Helper()
	s := openSample(t)
	j := sampleRun(t, s, "one", 3)
	head, seq := j.Head()
	event := must(Encode(map[string]any{"kind": protocol.KindEvent, "v": 1, "prev": prev(head), "seq": int64(seq) + 1, "ts": int64(1_800_000_000_000_000),
		"type": string(protocol.EvCancelled), "step": nil, "data": map[string]any{"by": "ada", "reason": ""}, "voucher": voucher}))
	err := s.Commit(t.Context(), Batch{Blocks: append(blocks, event), Moves: []Move{{Name: "run/one", Old: head, New: event.Link,
		Events: []EventRef{{seq + 1, event.Link}}, TS: 1_800_000_000_000_000}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatALaterVersionLinksToBehindPrevIsRead(t *testing.T) {
	s := appended(t, func(head protocol.Link) protocol.Link { return head }, absent("voucher"))
	r, err := Verify(t.Context(), s, VerifyOptions{Run: "one"})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, r, "missing")
	wantWhere(t, r, "one/12/voucher")
}

// Behind a hole in the chain verify goes on where the reflog knows an older head, and finds what
// is damaged there.
func TestBehindAHoleVerifyGoesOnWithTheReflog(t *testing.T) {
	hole := Raw([]byte("no event"))
	s := appended(t, func(protocol.Link) protocol.Link { return hole.Link }, protocol.Link{}, hole)
	removed := 0
	err := fs.WalkDir(os.DirFS(s.Dir()), dirBlobs, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		removed++
		return os.Remove(filepath.Join(s.Dir(), path))
	})
	if err != nil || removed == 0 {
		t.Fatalf("%d blobs removed, %v", removed, err)
	}
	r, err := Verify(t.Context(), s, VerifyOptions{Run: "one"})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, r, "not_an_event", "corrupt")
	wantWhere(t, r, "one/6/data.content")
	if r.Checked.Events != 11 {
		t.Errorf("%d events checked, want the last one and the 10 that the reflog leads to", r.Checked.Events)
	}
}

// A fork goes on from records that share what came before them; each of those, and of theirs,
// belongs to the fork, and to another one with the same Start.
func TestAForkMayLinkToEverythingItContinues(t *testing.T) {
	s := openSample(t)
	var blocks []Block
	add := func(record any) protocol.Link {
		b := must(Encode(record))
		blocks = append(blocks, b)
		return b.Link
	}
	start := func(continues ...protocol.Link) protocol.Link {
		return add(protocol.Start{Kind: protocol.KindStart, V: 1, Workflow: Raw(nil).Link, Inputs: Raw(nil).Link, Format: 1, Semantics: 1, Continues: continues})
	}
	step := func(start protocol.Link, role string, parents ...protocol.Link) protocol.Link {
		return add(protocol.StepRecord{Kind: protocol.KindStep, V: 1, Start: start, Parents: parents, Role: role, Visit: 1, Status: protocol.StepOK})
	}
	old := start()
	base := step(old, "base", old)
	first := step(old, "first", base)
	a, b := step(old, "a", first), step(old, "b", base)
	begun := start(first, a, b)
	after := step(begun, "after", first, base, a, b)
	for _, id := range []protocol.RunID{"fork", "again"} {
		j, err := s.Journal(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		_, err = j.Append(t.Context(), 1, []Draft{
			{Data: protocol.RunStarted{Start: begun, Source: Raw(nil).Link}},
			{Step: "after#1", Data: protocol.StepCompleted{Record: after, Status: protocol.StepOK}},
		}, append(blocks, Raw(nil)))
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := Verify(t.Context(), s, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, r)
}
