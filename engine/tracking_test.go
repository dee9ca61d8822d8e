package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
)

// looks are what the journal of a run says of its files, one line each.
func (b *bench) looks(run protocol.RunID) (out []string, trees []protocol.Link) {
	b.t.Helper()
	for e, err := range b.e.Store.After(context.Background(), run, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		data, err := e.AnyData()
		if err != nil {
			b.t.Fatal(err)
		}
		line, text := "", ""
		switch d := data.(type) {
		case protocol.FilesTracked:
			line, text = fmt.Sprintf("start %t %s", d.On, d.Why), d.Tree
		case protocol.FilesAt:
			line, text = fmt.Sprintf("%s %d %s%s%s", e.StepName(), d.Attempt, d.Phase, d.Why, strings.Join(d.Overlaps, "+")), d.Tree
		default:
			continue
		}
		out = append(out, strings.TrimSpace(line))
		l, err := protocol.ParseLink(text)
		if err != nil && text != "" {
			b.t.Fatal(err)
		}
		trees = append(trees, l)
	}
	return out, trees
}

// changed are the paths in which trees differ.
func (b *bench) changed(x, y protocol.Link) (out []string) {
	b.t.Helper()
	read := func(l protocol.Link) ([]byte, error) { return b.e.Store.Block(context.Background(), l) }
	for c, err := range tree.Diff(read, x, y) {
		if err != nil {
			b.t.Fatal(err)
		}
		out = append(out, c.Path)
	}
	return out
}

// lay writes files of the workspace.
func (b *bench) lay(files map[string]string) {
	b.t.Helper()
	for name, text := range files {
		path := filepath.Join(b.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

// held are the paths of a tree, with why they are omitted.
func (b *bench) held(root protocol.Link) string {
	b.t.Helper()
	text := root.String()
	return strings.ReplaceAll(strings.Join(b.keptBy(nil, &text), ","), " file ", "")
}

// The files are recorded before and after each attempt, with what the rules at the start leave out left out.
func TestC02FilesAreRecordedAroundEachAttempt(t *testing.T) {
	b := newBench(t)
	b.lay(map[string]string{"a": "1\n", ".gitignore": "*.log\n/out\n", "x.log": "no", "sub/b": "2"})
	run, v := b.run(`
wf: 1
workspace: {track: true}
roles:
  one: {run: 'echo more >> a; mkdir out; echo x > out/x; rm .gitignore'}
  two: {run: 'echo $WF_ATTEMPT > sub/c; [ "$WF_ATTEMPT" = 2 ]', retry: {attempts: 2, delay: 1ms}}
  three: {run: "true"}
edges:
  - {from: one, to: two}
  - {from: two, to: three}
  - {from: three, to: END}
`, nil)
	if v.Status != protocol.Done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	lines, trees := b.looks(run)
	want := "start true;one#1 1 before;one#1 1 after;two#1 1 before;two#1 1 after;two#1 2 before;two#1 2 after;three#1 1 before;three#1 1 after"
	if got := strings.Join(lines, ";"); got != want {
		t.Fatalf("the journal says %s, want %s", got, want)
	}
	diffs := []string{"", ".gitignore a", "", "sub/c", "", "sub/c", "", ""}
	for i := range diffs {
		if got := strings.Join(b.changed(trees[i], trees[i+1]), " "); got != diffs[i] {
			t.Errorf("%s: %q differ, want %q", lines[i+1], got, diffs[i])
		}
	}
}

// Globs, the limit of a file and secrets decide; the store is never recorded, wherever it lies.
func TestC02WhatIsRecorded(t *testing.T) {
	t.Setenv("TOKEN_OF_TEST", "hunter2-hunter2")
	b := newBench(t)
	s, err := cas.Open(context.Background(), filepath.Join(b.dir, "store [1]"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	b.e.Store = s
	b.lay(map[string]string{".gitignore": "dist\n*.log\n", ".wfignore": "local\n", "a.log": "", "dist/app": "", "dist/app.map": "", "data/x": "", "local": "",
		"key": "x hunter2-hunter2", "fits": strings.Repeat("x", 64<<10), "large": strings.Repeat("x", 64<<10+1), "deep/dist/app": "", "deep/y": ""})
	run, v := b.run(`
wf: 1
secrets: [TOKEN_OF_TEST]
workspace: {track: true, include: ["dist/**", "!**/*.map"], exclude: [data], max_size: 64KB}
roles: {one: {run: "true"}}
`, nil)
	if v.Status != protocol.Done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	_, trees := b.looks(run)
	if got, want := b.held(trees[0]), ".gitignore,.wfignore,deep/y,dist/app,fits,key omitted secret,large omitted size"; got != want {
		t.Errorf("recorded are %s, want %s", got, want)
	}
}

// Files are recorded where an agent may write, and where that is asked for.
func TestC02WhoseFilesAreRecorded(t *testing.T) {
	for _, x := range []struct{ yaml, want string }{
		{"roles: {one: {run: 'true'}}", ""},
		{"workspace: {exclude: [x]}\nroles: {one: {run: 'true'}}", ""},
		{"workspace: {track: false}\nroles: {one: {prompt: hi, tools: [write_file]}}", ""},
		{"roles: {one: {prompt: hi, tools: [read_file]}}", ""},
		{"roles: {one: {prompt: hi, tools: [write_file]}}", "start true;one#1 1 before;one#1 1 after"},
		{"roles: {one: {prompt: hi, tools: ['mcp:x/y']}, two: {run: 'true'}}\nmcp: {x: {command: [x]}}\nedges: [{from: START, to: two}, {from: two, to: one, when: 'false'}, {from: two, to: END}, {from: one, to: END}]", "start true;two#1 1 before;two#1 1 after"},
	} {
		b := newBench(t)
		b.e.Performers[protocol.ActPrompt] = silent{}
		run, v := b.run("wf: 1\n"+x.yaml, nil)
		if v.Status != protocol.Done {
			t.Fatalf("%s: %s", v.Status, v.Reason)
		}
		lines, _ := b.looks(run)
		if got := strings.Join(lines, ";"); got != x.want {
			t.Errorf("%s: %q, want %q", x.yaml, got, x.want)
		}
	}
}

// silent is an agent that says nothing. Its tools are those of agentkit, of which it may write with all but read_file.
type silent struct{}

func (silent) Perform(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error) {
	return protocol.Conclusion{Text: new("ok")}, nil
}

func (silent) MayWrite(r *protocol.Role, tool string) bool {
	return slices.ContainsFunc(r.Tools, func(t string) bool { return t != "read_file" })
}

// What differs between two steps was changed from outside; visits side by side are named to each other, and what they leave
// is durable with the record.
func TestC02VisitsSideBySideAreNamed(t *testing.T) {
	b := newBench(t)
	run, v := b.run(`
wf: 1
workspace: {track: true}
inputs: {n: {type: array, default: [1, 2, 3]}}
roles:
  many: {run: 'echo x > f$$; touch in.$$; while [ $(ls in.* | wc -l) -lt 3 ]; do sleep 0.01; done'}
  last: {run: "true"}
edges:
  - {from: START, to: many, for_each: inputs.n}
  - {from: many, to: last}
  - {from: last, to: END}
`, nil)
	if v.Status != protocol.Done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	lines, trees := b.looks(run)
	for i, of := range []string{"many#1[1] 1 after", "many#1[0] 1 after", "many#1[0] 1 after"} {
		with := []string{"many#1[1]+many#1[2]", "many#1[0]+many#1[2]", "many#1[0]+many#1[1]"}[i]
		name := fmt.Sprintf("many#1[%d] 1 after%s", i, with)
		if !slices.Contains(lines, name) {
			t.Errorf("%q is not among %q (%s)", name, lines, of)
		}
	}
	if got := b.changed(trees[0], trees[len(trees)-1]); len(got) != 6 {
		t.Errorf("%q differ", got)
	}
}

// Visits of runs that record a workspace apart from each other, and one that records nothing, are named all the same; and what
// recording names is why no result is kept.
func TestC02VisitsOfOtherRunsAreNamed(t *testing.T) {
	m := newMeeting(t)
	waits := `while [ $(ls $MEET | wc -l) -lt 3 ]; do sleep 0.01; done`
	yaml := "wf: 1\nworkspace: {%s}\nroles:\n  a: {run: 'touch $MEET/in.%[2]s in.%[2]s; " + waits + "', timeout: 1m%[3]s}\n"
	var ids []protocol.RunID
	for _, text := range []string{fmt.Sprintf(yaml, "track: true", "a", ""), fmt.Sprintf(yaml, "track: true, max_size: 2MB", "b", ", cache: true"), fmt.Sprintf(yaml, "track: false", "c", "")} {
		ids = append(ids, m.start(text, ""))
	}
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			if _, err := m.e.Drive(t.Context(), id, engine.DriveOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i, id := range ids[:2] {
		others := []string{string(ids[1-i]) + ":a#1", string(ids[2]) + ":a#1"}
		slices.Sort(others)
		lines, _ := m.looks(id)
		if want := "a#1 1 after" + strings.Join(others, "+"); !slices.Contains(lines, want) {
			t.Errorf("%q is not among %q", want, lines)
		}
	}
	want(t, "the one with cache", how(m.view(ids[1])), "none; not stored: another visit acted in the workspace meanwhile")
}

// A tree is kept with its run, shared with its forks, and goes with the last of them.
func TestC02TreesGoWithTheirRuns(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	big := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(big)
	b.lay(map[string]string{"big": string(big)})
	run, _ := b.run("wf: 1\nworkspace: {track: true}\nroles: {one: {run: 'date +%N > a'}}", nil)
	_, trees := b.looks(run)
	fork, err := b.e.Fork(ctx, run, engine.ForkOptions{At: 3})
	if err != nil {
		t.Fatal(err)
	}
	b.drive(fork)
	collect := func() cas.GCReport {
		t.Helper()
		r, err := cas.GC(ctx, inDir(b.e), cas.GCOptions{Grace: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	remove := func(run protocol.RunID) {
		t.Helper()
		if _, _, err := b.e.Delete(ctx, run, engine.Burial{}); err != nil {
			t.Fatal(err)
		}
	}
	verify := func() {
		t.Helper()
		r, err := cas.Verify(ctx, inDir(b.e), cas.VerifyOptions{})
		if err != nil || len(r.Findings) > 0 {
			t.Fatalf("%v %+v", err, r.Findings)
		}
	}
	collect()
	verify()
	remove(run)
	if collect(); len(b.changed(protocol.Link{}, trees[0])) != 1 {
		t.Error("the fork lost a tree that it shares")
	}
	verify()
	remove(fork)
	if r := collect(); r.Bytes < 1<<20 {
		t.Errorf("%d bytes were removed at once, and the files have more", r.Bytes)
	}
	if _, err := b.e.Store.Block(ctx, trees[0]); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("the tree is still there: %v", err)
	}
	verify()
}

// An archive has the files where that is asked for; what is imported is kept beside what is there.
func TestC02AnArchiveHasTheFilesThatItIsAskedFor(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.lay(map[string]string{"sub/a": "1"})
	run, _ := b.run("wf: 1\nworkspace: {track: true}\nroles: {one: {run: 'echo 2 > b'}, two: {run: 'echo 3 > c'}}\nedges: [{from: one, to: two}, {from: two, to: END}]", nil)
	_, trees := b.looks(run)
	archive := func(files bool) *bytes.Reader {
		t.Helper()
		var out bytes.Buffer
		if _, err := cas.Export(ctx, &out, inDir(b.e), cas.ExportOptions{Files: files}, run); err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(out.Bytes())
	}
	bare, whole := archive(false), archive(true)
	verified := func(s *cas.Store, want string) {
		t.Helper()
		r, err := cas.Verify(ctx, s, cas.VerifyOptions{Run: run})
		if err != nil || len(r.Findings) > 0 {
			t.Fatalf("%v %+v", err, r.Findings)
		}
		if got := strings.Contains(strings.Join(r.NotProven, "\n"), "not kept"); got != (want != "") {
			t.Errorf("not proven: %q", r.NotProven)
		}
	}
	into := newBench(t)
	for i, x := range []*bytes.Reader{bare, whole, whole, bare} {
		x.Seek(0, io.SeekStart)
		if _, err := cas.Import(ctx, x, inDir(into.e), cas.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		verified(inDir(into.e), []string{"not kept", "", "", ""}[i])
	}
	if got := into.changed(trees[0], trees[len(trees)-1]); strings.Join(got, " ") != "b c" {
		t.Errorf("%q differ", got)
	}
	// Dropped, the run is whole without them, and its tree is not there after a collection.
	if there, err := into.e.DropFiles(ctx, run); err != nil || !there {
		t.Fatal(there, err)
	}
	if there, err := into.e.DropFiles(ctx, run); err != nil || there {
		t.Fatal(there, err)
	}
	if _, err := cas.GC(ctx, inDir(into.e), cas.GCOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := into.e.Store.Block(ctx, trees[0]); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("the tree is still there: %v", err)
	}
	verified(inDir(into.e), "not kept")
	// Of two histories of one run both stay.
	other := newBench(t)
	other.lay(map[string]string{"else": "1"})
	x, _ := other.run("wf: 1\nworkspace: {track: true}\nroles: {one: {run: 'echo 2 > b'}}", nil)
	h, err := other.e.Store.Head(ctx, protocol.FilesHead(x))
	if err == nil {
		whole.Seek(0, io.SeekStart)
		err = other.e.Store.Commit(ctx, cas.Batch{Moves: []cas.Move{{Name: protocol.FilesHead(run), New: h.Link}}})
	}
	if err == nil {
		_, err = cas.Import(ctx, whole, inDir(other.e), cas.ImportOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cas.GC(ctx, inDir(other.e), cas.GCOptions{}); err != nil {
		t.Fatal(err)
	}
	_, own := other.looks(x)
	other.changed(own[0], own[len(own)-1])
	other.changed(trees[0], trees[len(trees)-1])
	verified(inDir(other.e), "")
}

// An archive or a restoring moves the head of the files while a visit acts: the tree behind the visit is kept beside what came.
func TestC02AHeadThatMovedIsMetAgain(t *testing.T) {
	b := newBench(t)
	b.lay(map[string]string{"a": "1"})
	ctx := context.Background()
	var run protocol.RunID
	var came protocol.Link
	inner := b.e.Performers[protocol.ActRun]
	b.e.Performers[protocol.ActRun] = meanwhile{inner, func() {
		h, err := b.e.Store.Head(ctx, protocol.FilesHead(run))
		if err != nil {
			t.Fatal(err)
		}
		var was protocol.FilesKept
		data, err := b.e.Store.Block(ctx, h.Link)
		if err == nil {
			err = cas.Decode(data, &was)
		}
		if err != nil {
			t.Fatal(err)
		}
		kept, err := cas.Encode(protocol.FilesKept{Kind: protocol.KindFilesKept, V: protocol.RecordVersion, Prev: h.Link, Tree: was.Tree})
		if err == nil {
			came = kept.Link
			err = b.e.Store.Commit(ctx, cas.Batch{Blocks: []cas.Block{kept}, Moves: []cas.Move{{Name: protocol.FilesHead(run), Old: h.Link, New: came}}})
		}
		if err != nil {
			t.Error(err)
		}
	}}
	p := b.load("wf: 1\nworkspace: {track: true}\nroles: {one: {run: 'echo 2 > b'}}")
	run, _, err := b.e.Begin(ctx, engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	if v := b.drive(run); v.Status != protocol.Done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	lines, trees := b.looks(run)
	if got := strings.Join(lines, ";"); got != "start true;one#1 1 before;one#1 1 after" {
		t.Fatalf("the journal says %s", got)
	}
	if got := b.held(trees[2]); got != "a,b" {
		t.Errorf("the tree behind the visit has %s", got)
	}
	h, err := b.e.Store.Head(ctx, protocol.FilesHead(run))
	if err != nil {
		t.Fatal(err)
	}
	var last protocol.FilesKept
	data, err := b.e.Store.Block(ctx, h.Link)
	if err == nil {
		err = cas.Decode(data, &last)
	}
	if err != nil || last.Prev != came || last.Tree != trees[2] {
		t.Errorf("kept is %+v, %v; want the tree %s behind %s", last, err, trees[2], came)
	}
}

// meanwhile does something at the beginning of each visit.
type meanwhile struct {
	roles.Performer
	do func()
}

func (m meanwhile) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	m.do()
	return m.Performer.Perform(ctx, turn, emit)
}

// Of many visits that act side by side a look names the first hundred, and says how many there were.
func TestC02ManyVisitsSideBySideAreCounted(t *testing.T) {
	for _, items := range []int{100, 101, 102, 250} {
		b := newBench(t)
		b.e.Parallel = items
		var inside sync.WaitGroup
		inside.Add(items)
		b.e.Performers[protocol.ActPrompt] = meanwhile{silent{}, func() {
			inside.Done()
			inside.Wait()
		}}
		run, v := b.run(fmt.Sprintf(`
wf: 1
workspace: {track: true}
roles:
  list: {set: {all: "${{ 1..%d }}"}}
  item: {prompt: hi, tools: [write_file]}
edges:
  - {from: list, to: item, for_each: output.all, max_parallel: %d}
  - {from: item, to: END}
`, items, items), nil)
		if v.Status != protocol.Done {
			t.Fatalf("%s: %s", v.Status, v.Reason)
		}
		var last protocol.FilesAt
		for e, err := range b.e.Store.After(t.Context(), run, 0) {
			if err == nil && e.Type == protocol.EvFilesAt {
				last, err = cas.DecodeData[protocol.FilesAt](&e.Event)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		count := 0
		if items-1 > 100 {
			count = items - 1
		}
		if len(last.Overlaps) != min(items-1, 100) || last.OverlapsCount != count {
			t.Errorf("%d side by side: %d names, %d", items, len(last.Overlaps), last.OverlapsCount)
		}
	}
}
