package cas

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// verifyClosed verifies a directory that no Store has open.
func verifyClosed(t testing.TB, dir string, o VerifyOptions) Report {
	t.Helper()
	r, err := VerifyDir(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantKinds(t *testing.T, r Report, kinds ...string) {
	t.Helper()
	if r.OK != (len(kinds) == 0) {
		t.Errorf("ok = %v with %d findings", r.OK, len(r.Findings))
	}
	for _, k := range kinds {
		found := false
		for _, f := range r.Findings {
			found = found || f.Kind == k
		}
		if !found {
			t.Errorf("no finding of kind %q in %v", k, r.Findings)
		}
	}
	for _, f := range r.Findings {
		if len(kinds) == 0 {
			t.Errorf("unexpected: %s", f)
		}
		if f.Where == "" || f.Expected == "" || f.Actual == "" || f.Fix == "" {
			t.Errorf("a finding lacks something: %+v", f)
		}
	}
}

func TestVerifyOfAGoodStoreIsClean(t *testing.T) {
	s := openSample(t)
	sampleRun(t, s, "one", 5)
	j := sampleRun(t, s, "two", 3)
	if _, err := s.Journal(t.Context(), "three"); err != nil {
		t.Fatal(err)
	}
	for e, err := range s.After(t.Context(), "two", 6) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Fork(t.Context(), e.TS+1, "fork", e, []Draft{{Data: protocol.Forked{Base: e.CID}}}, nil, nil); err != nil {
			t.Fatal(err)
		}
		break
	}
	for name, o := range map[string]VerifyOptions{"all": {}, "one run": {Run: "one"}, "a fork": {Run: "fork"}} {
		r, err := Verify(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			wantKinds(t, r)
			if r.Checked.Events == 0 || r.Checked.Blocks == 0 || r.Checked.Moves == 0 {
				t.Errorf("checked %+v", r.Checked)
			}
		})
	}
	if _, err := Verify(t.Context(), s, VerifyOptions{Run: "none"}); !errors.Is(err, protocol.ErrUnknownRun) {
		t.Errorf("an unknown run: %v", err)
	}
}

// closedSample is the directory of a closed store with one finished run.
func closedSample(t testing.TB, steps int) (string, *Journal) {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := sampleRun(t, s, "one", steps)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, j
}

func copyDir(t testing.TB, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestW19EveryFlippedByteOfAStoreIsFoundOrHarmless(t *testing.T) {
	dir, _ := closedSample(t, 12)
	clean := verifyClosed(t, dir, VerifyOptions{})
	wantKinds(t, clean)
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && (d.Name() == fileDB || strings.Contains(path, dirBlobs)) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 3 {
		t.Fatalf("only %d files: no blobs in the sample", len(files))
	}
	found, harmless := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		step := 251
		if filepath.Base(file) != fileDB {
			step = 150001
		}
		if testing.Short() {
			step *= 5
		}
		for at := 0; at < len(data); at += step {
			flipByte(t, file, data, at)
			r := verifyClosed(t, dir, VerifyOptions{})
			if r.OK {
				harmless++
				// Nothing may be wrong for those who read, either.
				readAll(t, dir, at)
			} else {
				found++
			}
			flipByte(t, file, data, at)
		}
	}
	t.Logf("%d found, %d harmless", found, harmless)
	wantKinds(t, verifyClosed(t, dir, VerifyOptions{}))
}

func flipByte(t *testing.T, file string, data []byte, at int) {
	t.Helper()
	data[at] ^= 0x41
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(data[at:at+1], int64(at))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// readAll reads the run from a store that verified clean; what it reads must be right.
func readAll(t *testing.T, dir string, at int) {
	t.Helper()
	s, err := Open(t.Context(), dir, Options{ReadOnly: true})
	if err != nil {
		t.Errorf("byte %d flipped: verified clean, but does not open: %v", at, err)
		return
	}
	defer s.Close()
	n := 0
	for e, err := range s.After(t.Context(), "one", 0) {
		if err != nil {
			t.Errorf("byte %d flipped: verified clean, but: %v", at, err)
			return
		}
		n = int(e.Seq)
	}
	if n == 0 {
		t.Errorf("byte %d flipped: verified clean, but there are no events", at)
	}
}

func writeOver(t testing.TB, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestW19EveryTruncatedStoreIsFound(t *testing.T) {
	dir, _ := closedSample(t, 4)
	file := filepath.Join(dir, fileDB)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(data, "\x00"))
	for n := 0; n < used; n += 1531 {
		writeOver(t, file, data[:n])
		r, err := VerifyDir(t.Context(), dir, VerifyOptions{})
		if err == nil && r.OK {
			t.Errorf("cut at %d of %d: clean", n, used)
		}
	}
}

func TestW19ADeletedBlobIsNamedByRunSeqField(t *testing.T) {
	dir, _ := closedSample(t, 3)
	blobs, err := filepath.Glob(filepath.Join(dir, dirBlobs, "*", "*"))
	if err != nil || len(blobs) == 0 {
		t.Fatalf("no blobs: %v", err)
	}
	for _, b := range blobs {
		if err := os.Remove(b); err != nil {
			t.Fatal(err)
		}
	}
	for name, o := range map[string]VerifyOptions{"all": {}, "one run": {Run: "one"}} {
		t.Run(name, func(t *testing.T) {
			r := verifyClosed(t, dir, o)
			wantKinds(t, r, "corrupt")
			wantWhere(t, r, "one/6/data.content")
			wantWhere(t, r, "one/9/data.content.parts[0]")
		})
	}
}

func wantWhere(t *testing.T, r Report, where string) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Where == where {
			return
		}
	}
	t.Errorf("no finding at %s in %v", where, r.Findings)
}

func TestW19ARewoundHeadIsFound(t *testing.T) {
	dir, j := closedSample(t, 3)
	head, seq := j.Head()
	var old Head
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range s.After(t.Context(), "one", 4) {
		if err != nil {
			t.Fatal(err)
		}
		old = Head{Name: "run/one", Link: e.CID, Seq: e.Seq, TS: e.TS}
		break
	}
	setHead(t, s, old)
	r, err := Verify(t.Context(), s, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, r, "rolled_back")
	wantWhere(t, r, "one/11/head")
	if f := r.Findings[0]; f.Expected != head.String() || f.Actual != old.Link.String() || seq != 11 {
		t.Errorf("finding %+v; the head was %s at %d", f, head, seq)
	}
	// Without the reflog only what was noted elsewhere shows it.
	dropReflog(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r = verifyClosed(t, dir, VerifyOptions{})
	wantKinds(t, r)
	if !strings.Contains(strings.Join(r.NotProven, "\n"), "reflog is lost") {
		t.Errorf("not proven: %q", r.NotProven)
	}
	wantKinds(t, verifyClosed(t, dir, VerifyOptions{Run: "one", Head: head}), "rolled_back")
	seen := PinnedHeads{Heads: map[string]Seen{"run/one": {Head: head, Seq: seq}}}
	wantKinds(t, verifyClosed(t, dir, VerifyOptions{LastSeen: seen}), "rolled_back")
}

func TestW19YesterdaysCopyIsFoundByWhatWasSeen(t *testing.T) {
	dir, _ := closedSample(t, 2)
	yesterday := copyDir(t, dir)
	state := t.TempDir()
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	sampleRun(t, s, "two", 2)
	r, err := Verify(t.Context(), s, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, r)
	if err := See(t.Context(), state, dir, r.Heads); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	seen, err := LoadPinnedHeads(state, dir)
	if err != nil || len(seen.Heads) != 2 {
		t.Fatalf("seen %+v, %v", seen, err)
	}
	wantKinds(t, verifyClosed(t, dir, VerifyOptions{LastSeen: seen}))
	r = verifyClosed(t, yesterday, VerifyOptions{LastSeen: seen})
	wantKinds(t, r, "head_missing")
	wantWhere(t, r, "two/8")
}

func TestW05ALostReflogIsNotProvenAndNoFailure(t *testing.T) {
	dir, _ := closedSample(t, 2)
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	dropReflog(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r := verifyClosed(t, dir, VerifyOptions{})
	wantKinds(t, r)
	if !strings.Contains(strings.Join(r.NotProven, "\n"), "reflog is lost") {
		t.Errorf("not proven: %q", r.NotProven)
	}
}

func TestW05WithBlocksAndHeadsAloneTheRunIsProven(t *testing.T) {
	dir, _ := closedSample(t, 40)
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = s.update(t.Context(), func(tx *bolt.Tx) error {
		return errors.Join(tx.DeleteBucket(bucketIndex), tx.DeleteBucket(bucketReflog), tx.DeleteBucket(bucketMeta))
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, o := range []VerifyOptions{{}, {Run: "one"}} {
		r := verifyClosed(t, dir, o)
		wantKinds(t, r)
		if r.Checked.Events != 122 || !strings.Contains(strings.Join(r.NotProven, "\n"), "reflog is lost") {
			t.Errorf("checked %+v, not proven %q", r.Checked, r.NotProven)
		}
	}
}

func TestVerifyBesideAWriterIsClean(t *testing.T) {
	s := openSample(t)
	sampleRun(t, s, "first", 2)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 4 {
			sampleRunOf(t, s, protocol.RunID(fmt.Sprint("run-", i)), 10, func(i int) string { return randomText(600 + i) })
		}
	}()
	for n := 0; ; n++ {
		r, err := Verify(t.Context(), s, VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wantKinds(t, r)
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestVerifyFindsRecordsThatDoNotBelongToTheRun(t *testing.T) {
	s := openSample(t)
	sampleRun(t, s, "one", 1)
	ctx := t.Context()
	j, err := s.Journal(ctx, "two")
	if err != nil {
		t.Fatal(err)
	}
	start := must(Encode(protocol.Start{Kind: protocol.KindStart, V: 1, Workflow: Raw(nil).Link, Inputs: Raw(nil).Link, Format: 1, Semantics: 1}))
	stranger := must(Encode(protocol.StepRecord{Kind: protocol.KindStep, V: 1, Start: start.Link, Role: "x", Visit: 1, Status: protocol.StepOK}))
	record := must(Encode(protocol.StepRecord{Kind: protocol.KindStep, V: 1, Start: start.Link, Parents: []protocol.Link{stranger.Link}, Resumes: stranger.Link, Role: "x", Visit: 2, Status: protocol.StepOK}))
	_, err = j.Append(ctx, 1, []Draft{
		{Data: protocol.RunStarted{Start: start.Link, Source: Raw(nil).Link}},
		{Step: "x#1", Data: protocol.StepCompleted{Record: record.Link, Status: protocol.StepFailed}},
		{Step: "x#1", Data: protocol.StepCompleted{}},
		{Data: protocol.Finished{Status: protocol.Done}},
		{Step: "x#2", Data: protocol.StepStarted{}},
	}, []Block{Raw(nil), start, stranger, record})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Verify(ctx, s, VerifyOptions{Run: "two"})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, r, "record", "chain")
	for _, w := range []string{"two/2/data.record.parents[0]", "two/2/data.record.resumes", "two/2/data.status", "two/3/data.record", "two/5/type"} {
		wantWhere(t, r, w)
	}
}

func TestVerifyOfSomethingElseIsAnError(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "letter.txt")
	if err := os.WriteFile(file, []byte("Dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, says string }{
		{filepath.Join(dir, "none"), "there is no store"},
		{t.TempDir(), "there is no store"},
		{file, "a store is a directory"},
		{dir, "something else (letter.txt)"},
	} {
		_, err := VerifyDir(t.Context(), c.dir, VerifyOptions{})
		if !errors.Is(err, protocol.ErrStore) || !strings.Contains(err.Error(), c.says) || !strings.Contains(protocol.HintOf(err), "--store") {
			t.Errorf("want %q, have %v (%s)", c.says, err, protocol.HintOf(err))
		}
	}
}
