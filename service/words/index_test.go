package words

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/files"
	"wf/protocol"
	"wf/roles"
)

// talk is a workflow of a command that says the topic, a question, and another command.
const talk = `wf: 1
name: talk
inputs: {topic: {type: string, required: true}}
defaults: {timeout: 1m}
roles:
  say: {run: "true"}
  gate: {ask: "May it go on?"}
  end: {run: "true"}
edges:
  - {from: START, to: say, prompt: "Speak of ${{ inputs.topic }}"}
  - {from: say, to: gate}
  - {from: gate, to: end}
  - {from: end, to: END}
`

// speaker says what it is to say.
type speaker func(turn protocol.Turn) string

func (s speaker) Perform(_ context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
	text := s(turn)
	return protocol.Conclusion{Text: &text}, nil
}

// place is a store with its index.
type place struct {
	testing.TB
	s *cas.Store
	e *engine.Engine
	x *Index
}

func key() []byte { return []byte("the key of the user") }

func newPlace(t testing.TB, dir string) *place {
	t.Helper()
	s, err := cas.Open(t.Context(), dir, cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	p := &place{TB: t, s: s, e: &engine.Engine{Store: s, Performers: map[protocol.Action]roles.Performer{
		protocol.ActAsk: roles.Ask{}, protocol.ActSet: roles.Set{},
		protocol.ActRun: speaker(func(turn protocol.Turn) string { return "The " + turn.Role.Name + " of " + turn.EdgePrompt }),
	}}}
	p.again()
	return p
}

// again is the index as another process has it.
func (p *place) again() { p.x = New(p.s, p.e, key) }

// begin begins talk, and drives it until it waits.
func (p *place) begin(yaml, topic string) protocol.RunID {
	p.Helper()
	program, diags := lang.Load([]byte(yaml), lang.Options{Read: func(string) ([]byte, error) { return []byte(talk), nil }})
	if program == nil {
		p.Fatal(diags)
	}
	inputs, err := program.Inputs(map[string]any{"topic": topic})
	if err != nil {
		p.Fatal(err)
	}
	run, _, err := p.e.Begin(p.Context(), engine.Launch{Program: program, Source: []byte(yaml), Inputs: inputs, Workspace: p.TempDir(), CreatedBy: "anna"})
	if err != nil {
		p.Fatal(err)
	}
	p.drive(run)
	return run
}

func (p *place) drive(run protocol.RunID) {
	p.Helper()
	if _, err := p.e.Drive(p.Context(), run, engine.DriveOptions{}); err != nil {
		p.Fatal(err)
	}
}

func (p *place) answer(run protocol.RunID, text string) {
	p.Helper()
	if _, err := p.e.Answer(p.Context(), run, engine.Reply{By: "ben", Source: "test", Text: text}); err != nil {
		p.Fatal(err)
	}
	p.drive(run)
}

func (p *place) heads() []cas.Head {
	p.Helper()
	heads, err := p.s.Newest(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	return heads
}

func (p *place) catchUp() {
	p.Helper()
	if err := p.x.CatchUp(p.Context(), p.heads(), CatchUpOptions{}); err != nil {
		p.Fatal(err)
	}
}

// by are the runs that a person has to do with, in the order of their ids.
func (p *place) by(person string) (out []protocol.RunID) {
	p.Helper()
	f, err := p.x.Find(p.Context(), nil, person)
	if err != nil {
		p.Fatal(err)
	}
	for _, h := range p.heads() {
		if run := protocol.RunOf(h.Name); f.Has(run) {
			out = append(out, run)
		}
	}
	slices.Sort(out)
	return out
}

// in are the runs that are there in which a search is said, in the order of their ids.
func (p *place) in(search string) (out []protocol.RunID) {
	p.Helper()
	f := p.find(search)
	for _, h := range p.heads() {
		if run := protocol.RunOf(h.Name); f.Has(run) {
			out = append(out, run)
		}
	}
	slices.Sort(out)
	return out
}

func (p *place) find(search string) *Found {
	p.Helper()
	wanted, err := api.ReadSearch(search)
	if err != nil {
		p.Fatal(err)
	}
	f, err := p.x.Find(p.Context(), wanted, "")
	if err != nil {
		p.Fatal(err)
	}
	return f
}

func (p *place) want(search string, runs ...protocol.RunID) {
	p.Helper()
	runs = slices.Sorted(slices.Values(runs))
	if got := p.in(search); !slices.Equal(got, runs) {
		p.Errorf("%q is said in %v, want %v", search, got, runs)
	}
}

// searched is how far a search goes.
func (p *place) searched() (api.Searched, []error) {
	p.Helper()
	f, err := p.x.Find(p.Context(), nil, "")
	if err != nil {
		p.Fatal(err)
	}
	return f.Searched(p.heads())
}

// behind is how many runs are not indexed whole.
func (p *place) behind() int {
	s, _ := p.searched()
	return s.Behind
}

func (p *place) folder() string { return filepath.Join(p.s.Beside(), Dir) }

// holds reports whether a file of the index has a text in it.
func (p *place) holds(text string) (in bool) {
	p.Helper()
	err := filepath.WalkDir(p.folder(), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil // it was replaced
		}
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		in = in || bytes.Contains(b, []byte(text))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		p.Error(err)
	}
	return in
}

func TestRunsAreFoundAsTheyGoOn(t *testing.T) {
	p := newPlace(t, t.TempDir())
	p.want("rails")
	a, b := p.begin(talk, "rails"), p.begin(talk, "roads")
	if n := p.behind(); n != 2 {
		t.Errorf("%d runs are behind, want 2", n)
	}
	if s, _ := p.searched(); s.UpTo != "" {
		t.Errorf("searched up to %s, of none", s.UpTo)
	}
	p.catchUp()
	p.want("rails", a)
	p.want("go on", a, b)
	p.answer(a, "yes, zeppelins")
	if s, _ := p.searched(); s.Runs != 1 || s.Behind != 1 || s.UpTo == "" {
		t.Errorf("%+v", s)
	}
	p.want("rails", a) // what was indexed is still found
	p.want("zeppelins")
	p.catchUp()
	p.want("zeppelins rails", a)
	p.again() // and by another process
	p.want("zeppelins rails", a)
	if n := p.behind(); n != 0 {
		t.Errorf("%d runs are behind", n)
	}
	facts := p.x.Facts(p.heads()[0])
	if facts == nil || facts.Status != protocol.Done {
		t.Errorf("%+v", facts)
	}
}

// What a sub-workflow says is found in the run that it belongs to, with where it was said.
func TestWhatASubWorkflowSaysIsFound(t *testing.T) {
	p := newPlace(t, t.TempDir())
	outer := strings.Replace(strings.Replace(talk, `say: {run: "true"}`, `say: {workflow: inner.yaml, with: {topic: "the ${{ inputs.topic }} within"}}`, 1), "name: talk", "name: outer", 1)
	run := p.begin(outer, "rails")
	p.catchUp()
	runs := p.in("within")
	if len(runs) != 2 || !slices.Contains(runs, run) {
		t.Fatalf("said in %v, want %s and its sub-workflow", runs, run)
	}
	child := runs[0]
	if child == run {
		child = runs[1]
	}
	hits, err := p.find("speak within").Hits(t.Context(), run)
	if err != nil || !slices.Contains(hits, api.Hit{Step: "say#1", Kind: "prompt", Text: "Speak of the rails within", Run: child}) {
		t.Errorf("%+v, %v", hits, err)
	}
}

// Of a chain of forks none of which is indexed, what is read is committed as of other runs: a segment has a greatest size.
func TestAChainOfForksIsCommittedInParts(t *testing.T) {
	p := newPlace(t, t.TempDir())
	base := p.begin(talk, "rails")
	p.answer(base, "yes")
	fork, err := p.e.Fork(t.Context(), base, engine.ForkOptions{At: 4, By: "carl"})
	if err != nil {
		t.Fatal(err)
	}
	for _, full := range []bool{false, true} {
		there := map[string]cas.Head{}
		for _, h := range p.heads() {
			there[string(protocol.RunOf(h.Name))] = h
		}
		c := &catching{x: p.x, ctx: t.Context(), wait: t.Context(), there: func() map[string]cas.Head { return there }}
		if err := c.look(); err != nil {
			t.Fatal(err)
		}
		if full {
			c.b.texts = commitBytes
		}
		if _, _, err := c.base(fork); err != nil {
			t.Fatal(err)
		}
		if u := p.x.at.unit(string(base)); (u != nil) != full || full == (c.b.unit(string(base)) != nil) {
			t.Errorf("full %t: the base is indexed as %+v", full, u)
		}
	}
}

func TestAForkHasWhatItShares(t *testing.T) {
	p := newPlace(t, t.TempDir())
	base := p.begin(talk, "rails")
	_, seq, err := p.s.Tip(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	p.answer(base, "zeppelins")
	fork, err := p.e.Fork(t.Context(), base, engine.ForkOptions{At: seq, By: "carl"})
	if err != nil {
		t.Fatal(err)
	}
	p.answer(fork, "airships")
	of, err := p.e.Fork(t.Context(), fork, engine.ForkOptions{At: seq + 1, By: "carl"})
	if err != nil {
		t.Fatal(err)
	}
	p.catchUp()
	p.want("rails", base, fork, of)
	p.want("zeppelins", base)
	p.want("airships", fork)
	p.want("airships rails", fork)
	for _, s := range p.x.at.segs {
		for i := range s.units {
			if u := &s.units[i]; u.id == string(fork) && (u.base != string(base) || u.from != seq) {
				t.Errorf("the fork is indexed from event %d of %q, want %d of %s", u.from, u.base, seq, base)
			}
		}
	}
	for person, want := range map[string][]protocol.RunID{"ANNA": {base, fork, of}, "ben": {base, fork}, "carl": {fork, of}, "ann": nil, "nobody": nil} {
		if got := p.by(person); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s has to do with %v, want %v", person, got, want)
		}
	}
	p.want("anna")
	hits, err := p.find("rails").Hits(t.Context(), of)
	if err != nil || len(hits) == 0 || hits[0].Run != "" {
		t.Errorf("%+v, %v", hits, err)
	}
	if _, _, err := p.e.Delete(t.Context(), base, engine.Burial{}); err != nil {
		t.Fatal(err)
	}
	if err := p.x.Purge(t.Context(), []protocol.RunID{base}); err != nil {
		t.Fatal(err)
	}
	if p.holds("zeppelin") || p.behind() != 2 {
		t.Errorf("its words are there: %v; %d forks are to be indexed again, want 2", p.holds("zeppelin"), p.behind())
	}
	p.catchUp()
	p.want("rails", fork, of)
}

// What is deleted is not in any file once Purge has returned: also of segments that were joined, and by several at once.
func TestWhatIsDeletedIsPurged(t *testing.T) {
	p := newPlace(t, t.TempDir())
	var runs []protocol.RunID
	for i := range 3 * joinMany {
		runs = append(runs, p.begin(talk, fmt.Sprintf("topic%dx", i)))
		p.catchUp()
	}
	if n := len(p.x.at.segs); n >= 2*joinMany {
		t.Errorf("there are %d segments", n)
	}
	if !p.holds("talk") {
		t.Error("the name of a workflow is not in the index: what is looked for is not how it is written")
	}
	var all sync.WaitGroup
	for _, run := range runs[1:] {
		if err := p.e.Cancel(t.Context(), run, "ben", ""); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			_, _, err := p.e.Delete(t.Context(), run, engine.Burial{})
			if err == nil {
				err = p.x.Purge(t.Context(), []protocol.RunID{run})
			}
			if err != nil {
				t.Error(err)
			}
			if p.holds(string(run)) {
				t.Errorf("%s is still there", run)
			}
		})
	}
	all.Wait()
	p.want("speak", runs[0])
	for i := range runs {
		if here := p.holds(fmt.Sprintf("opic%dx", i)) || p.holds(fmt.Sprintf("%dx", i)); here != (i == 0) {
			t.Errorf("topic %d is in the index: %v", i, here)
		}
	}
	if err := p.e.Cancel(t.Context(), runs[0], "ben", ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.e.Delete(t.Context(), runs[0], engine.Burial{}); err != nil { // as by a process without an index
		t.Fatal(err)
	}
	p.catchUp()
	if p.holds("talk") || p.holds("opic0x") || p.x.at.runs != 0 || len(p.x.at.segs) != 0 {
		t.Errorf("%d runs are left of nothing, in %d segments", p.x.at.runs, len(p.x.at.segs))
	}
}

// A run that is deleted while it is being indexed leaves nothing.
func TestARunThatIsDeletedMeanwhileIsNotIndexed(t *testing.T) {
	p := newPlace(t, t.TempDir())
	run := p.begin(talk, "rails")
	c := &catching{x: p.x, ctx: t.Context(), wait: t.Context(), v: &view{}}
	p.x.Refresh(t.Context())
	if err := c.run(run, p.heads()[0]); err != nil || len(c.b.units) == 0 {
		t.Fatal(err)
	}
	if err := p.e.Cancel(t.Context(), run, "ben", ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.e.Delete(t.Context(), run, engine.Burial{}); err != nil {
		t.Fatal(err)
	}
	if err := p.x.Purge(t.Context(), []protocol.RunID{run}); err != nil {
		t.Fatal(err)
	}
	if err := c.commit(); err != nil {
		t.Fatal(err)
	}
	if p.holds(string(run)) {
		t.Error("it is in the index")
	}
}

// Whatever lies in its place is thrown away, and the index made anew: it is a cache.
func TestADamagedIndexIsMadeAnew(t *testing.T) {
	first := func(p *place, pattern string) string {
		names, err := filepath.Glob(filepath.Join(p.folder(), pattern))
		if err != nil || len(names) == 0 {
			p.Fatal(names, err)
		}
		return names[0]
	}
	pipe := func(p *place, path string) {
		if err := errors.Join(os.RemoveAll(path), syscall.Mkfifo(path, 0o600)); err != nil {
			p.Fatal(err)
		}
	}
	write := func(p *place, path string, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			p.Fatal(err)
		}
	}
	for name, damage := range map[string]func(p *place){
		"a file in its place": func(p *place) {
			if err := os.RemoveAll(p.folder()); err != nil {
				p.Fatal(err)
			}
			write(p, p.folder(), []byte("not an index"))
		},
		"a link in its place": func(p *place) {
			elsewhere := p.TempDir()
			write(p, filepath.Join(elsewhere, "kept"), []byte("kept"))
			if err := errors.Join(os.RemoveAll(p.folder()), os.Symlink(elsewhere, p.folder())); err != nil {
				p.Fatal(err)
			}
			p.Cleanup(func() {
				if _, err := os.Stat(filepath.Join(elsewhere, "kept")); err != nil {
					p.Errorf("what a link leads to is touched: %v", err)
				}
			})
		},
		"others may read it":    func(p *place) { _ = os.Chmod(p.folder(), 0o755) },
		"no manifest":           func(p *place) { _ = os.Remove(filepath.Join(p.folder(), manifestName)) },
		"an empty manifest":     func(p *place) { write(p, filepath.Join(p.folder(), manifestName), nil) },
		"a manifest of a later": func(p *place) { write(p, filepath.Join(p.folder(), manifestName), []byte(`{"schema":"wf.search/v9"}`)) },
		"a manifest that climbs": func(p *place) {
			write(p, filepath.Join(p.folder(), manifestName), []byte(`{"schema":"`+manifestSchema+`","segments":["../x.seg"]}`))
		},
		"a directory for a manifest": func(p *place) {
			name := filepath.Join(p.folder(), manifestName)
			if err := errors.Join(os.Remove(name), os.MkdirAll(filepath.Join(name, "below"), 0o700)); err != nil {
				p.Fatal(err)
			}
		},
		"a link for a lock": func(p *place) {
			elsewhere := filepath.Join(p.TempDir(), "kept")
			write(p, elsewhere, []byte("kept"))
			name := filepath.Join(p.folder(), lockName)
			if err := errors.Join(os.Remove(name), os.Symlink(elsewhere, name)); err != nil {
				p.Fatal(err)
			}
			p.Cleanup(func() {
				if b, err := os.ReadFile(elsewhere); string(b) != "kept" {
					p.Errorf("what a link leads to is touched: %q, %v", b, err)
				}
			})
		},
		"a segment is missing": func(p *place) { _ = os.Remove(first(p, "*.seg")) },
		"a segment is empty":   func(p *place) { write(p, first(p, "*.seg"), nil) },
		"a segment is a pipe's": func(p *place) {
			name := first(p, "*.seg")
			if err := errors.Join(os.Remove(name), os.Symlink("/dev/zero", name)); err != nil {
				p.Fatal(err)
			}
		},
		"a pipe for a segment":     func(p *place) { pipe(p, first(p, "*.seg")) },
		"a pipe for a manifest":    func(p *place) { pipe(p, filepath.Join(p.folder(), manifestName)) },
		"a pipe for a lock":        func(p *place) { pipe(p, filepath.Join(p.folder(), lockName)) },
		"a pipe in its place":      func(p *place) { pipe(p, p.folder()) },
		"a segment of a terabyte":  func(p *place) { _ = os.Truncate(first(p, "*.seg"), 1<<40) },
		"a manifest of a terabyte": func(p *place) { _ = os.Truncate(filepath.Join(p.folder(), manifestName), 1<<40) },
		"a segment twice": func(p *place) {
			write(p, filepath.Join(p.folder(), manifestName), []byte(strings.Replace(`{"schema":"`+manifestSchema+`","segments":["X","X"]}`, "X", filepath.Base(first(p, "*.seg")), -1)))
		},
		"its head is damaged": func(p *place) {
			name := first(p, "*.seg")
			b, err := os.ReadFile(name)
			if err != nil {
				p.Fatal(err)
			}
			b[headStart+3] ^= 1
			write(p, name, b)
		},
		"its words are damaged": func(p *place) {
			name := first(p, "*.seg")
			b, err := os.ReadFile(name)
			if err != nil {
				p.Fatal(err)
			}
			b[len(b)-3] ^= 1
			write(p, name, b)
		},
		"another user sealed it": func(p *place) { p.x.key = func() []byte { return []byte("another key") } },
	} {
		for _, fresh := range []bool{true, false} {
			t.Run(fmt.Sprint(name, fresh), func(t *testing.T) {
				p := newPlace(t, t.TempDir())
				run := p.begin(talk, "rails")
				p.catchUp()
				p.want("rails", run)
				if fresh {
					p.again() // of a process that has not read it before
				}
				damage(p)
				p.in("rails") // no error, whatever is found
				p.catchUp()
				p.want("rails", run)
				p.want("gate")
				p.want("roads")
				if n := p.behind(); n != 0 {
					t.Errorf("%d runs are behind", n)
				}
				p.answer(run, "zeppelins")
				p.catchUp()
				p.want("rails zeppelins", run)
				p.x = New(p.s, p.e, p.x.key)
				p.catchUp()
				p.want("rails zeppelins", run)
				if len(p.x.memory) > 0 {
					t.Error("it is kept in memory, and each process makes it again")
				}
				info, err := os.Lstat(p.folder())
				if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
					t.Errorf("%v, %v", info, err)
				}
			})
		}
	}
}

// A store that was put back, or a copy that went another way, has another history under the same ids.
func TestTheIndexOfAnotherHistoryIsNotTaken(t *testing.T) {
	a := newPlace(t, filepath.Join(t.TempDir(), "a"))
	run := a.begin(talk, "rails")
	there := filepath.Join(t.TempDir(), "b")
	if err := os.CopyFS(there, os.DirFS(a.s.Dir())); err != nil {
		t.Fatal(err)
	}
	b := newPlace(t, there)
	a.answer(run, "zeppelins")
	a.catchUp()
	for _, answer := range []string{"", "airships"} {
		if answer != "" {
			b.answer(run, answer)
		}
		if err := errors.Join(os.RemoveAll(b.folder()), os.CopyFS(b.folder(), os.DirFS(a.folder())), os.Chmod(b.folder(), 0o700)); err != nil {
			t.Fatal(err)
		}
		b.again()
		b.catchUp()
		b.want("zeppelins")
		b.want("rails", run)
		if n := b.behind(); n != 0 {
			t.Errorf("%d runs are behind", n)
		}
	}
	b.want("airships rails", run)
}

// Where nothing can be written, all is found all the same.
func TestAnIndexThatCannotBeWritten(t *testing.T) {
	p := newPlace(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.x.shelf = folder{filepath.Join(file, Dir)}
	var runs []protocol.RunID
	for i := range joinMany + 1 {
		runs = append(runs, p.begin(talk, fmt.Sprint("topic", i)))
		p.catchUp()
	}
	p.want("topic", runs...)
	p.want("topic3", runs[3])
	if n := len(p.x.memory); n == 0 || n >= joinMany {
		t.Errorf("%d segments are kept in memory", n)
	}
	for _, run := range runs[:2] {
		if err := p.e.Cancel(t.Context(), run, "ben", ""); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.e.Delete(t.Context(), run, engine.Burial{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.x.Purge(t.Context(), runs[:1]); err != nil { // there is no file that would hold it
		t.Error(err)
	}
	p.catchUp()
	if p.x.at.unit(string(runs[0])) != nil || p.x.at.unit(string(runs[1])) != nil {
		t.Error("what is deleted is kept")
	}
	p.want("topic", runs[2:]...)
}

// A run that cannot be read is named, and hides no other.
func TestARunThatCannotBeReadIsNamed(t *testing.T) {
	p := newPlace(t, t.TempDir())
	run := p.begin(talk, "rails")
	none := cas.Raw([]byte("no event"))
	if err := p.s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{none}, Moves: []cas.Move{{Name: protocol.RunHead("BROKEN"), New: none.Link, Events: []cas.EventRef{{Seq: 1, CID: none.Link}}}}}); err != nil {
		t.Fatal(err)
	}
	told := 0
	for range 2 {
		if err := p.x.CatchUp(t.Context(), p.heads(), CatchUpOptions{Tell: func(run protocol.RunID, err error) {
			if told++; run != "BROKEN" || err == nil {
				t.Errorf("told of %s: %v", run, err)
			}
		}}); err != nil {
			t.Fatal(err)
		}
	}
	s, errs := p.searched()
	if told != 1 || s.Behind != 1 || s.Runs != 1 || len(errs) != 1 {
		t.Errorf("told %d times, %+v, %v", told, s, errs)
	}
	p.want("rails", run)
}

// long begins a run that says a long text in each of its steps, and drives it to its end.
func (p *place) long(steps int) protocol.RunID {
	p.Helper()
	n := 0
	long := strings.Repeat("many words of a long text, ", textMax/27)
	p.e.Performers[protocol.ActRun] = speaker(func(protocol.Turn) string {
		n++
		return fmt.Sprintf("step%dx %s", n, long)
	})
	return p.begin(fmt.Sprintf("wf: 1\nname: long\ninputs: {topic: {type: string}}\nlimits: {steps: %d}\ndefaults: {timeout: 1m}\nroles: {a: {run: \"true\"}}\nedges:\n  - {from: START, to: a}\n  - {from: a, to: a, limit: %d, on_limit: END}\n", steps+1, steps-1), "x")
}

// A deletion waits for one commit of an index that takes long, and not for all.
func TestAPurgeHasItsTurnBetweenTwoCommits(t *testing.T) {
	p := newPlace(t, t.TempDir())
	const steps = commitBytes/textMax/2 + 8
	first, second := p.long(steps), p.long(steps)
	purged := false
	if err := p.x.CatchUp(t.Context(), p.heads(), CatchUpOptions{Progress: func(int, int) {
		if !p.holds(string(first)) {
			t.Error("nothing is committed yet")
		}
		if _, _, err := p.e.Delete(t.Context(), first, engine.Burial{}); err != nil {
			t.Error(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		if err := p.x.Purge(ctx, []protocol.RunID{first}); err != nil {
			t.Error(err)
		}
		if purged = true; p.holds(string(first)) {
			t.Error("it is still in the index")
		}
	}}); err != nil || !purged {
		t.Fatal(purged, err)
	}
	p.want("step1x", second)
}

// Of a long run, parts are committed; it is searched whole once all are.
func TestALongRunIsIndexedInParts(t *testing.T) {
	p := newPlace(t, t.TempDir())
	const steps = 160
	run := p.long(steps)
	p.catchUp()
	if len(p.x.at.segs) < 2 {
		t.Errorf("%d bytes are in %d segments", steps*textMax, len(p.x.at.segs))
	}
	for _, s := range p.x.at.segs {
		for i := range s.units {
			if u := &s.units[i]; u.id == string(run) && len(u.defs) != 1 {
				t.Errorf("the part up to event %d has the definitions %v: a process that is killed behind it would lose them", u.seq, u.defs)
			}
		}
	}
	for _, i := range []int{1, steps / 2, steps} {
		p.want(fmt.Sprintf("step%dx", i), run)
	}
	if n := p.behind(); n != 0 {
		t.Errorf("%d runs are behind", n)
	}
	p.again()
	p.want(fmt.Sprintf("step1x step%dx", steps), run)
}

// What is not read in the time that there is, is told, and read the next time.
func TestWhatIsNotReadInTimeIsTold(t *testing.T) {
	p := newPlace(t, t.TempDir())
	var runs []protocol.RunID
	for i := range 20 {
		runs = append(runs, p.begin(talk, fmt.Sprint("topic", i)))
	}
	for before := -1; ; {
		if err := p.x.CatchUp(t.Context(), p.heads(), CatchUpOptions{Within: time.Microsecond}); err != nil {
			t.Fatal(err)
		}
		s, errs := p.searched()
		found := p.in("speak")
		if s.Runs+s.Behind != len(runs) || len(found) != s.Runs || s.Runs < before || len(errs) > 0 {
			t.Fatalf("%+v, found in %d runs, before in %d; %v", s, len(found), before, errs)
		}
		if before = s.Runs; s.Runs > 0 {
			break
		}
		p.catchUp() // the time was over before the first
	}
	p.catchUp()
	p.want("speak", runs...)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	run := p.begin(talk, "late")
	if err := p.x.CatchUp(ctx, p.heads(), CatchUpOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a catch-up that is cancelled: %v", err)
	}
	p.want("late")
	p.catchUp()
	p.want("late", run)
}

// A purge waits for a process that writes, and says so if that takes too long.
func TestAPurgeWaitsForAWriter(t *testing.T) {
	p := newPlace(t, t.TempDir())
	run := p.begin(talk, "rails")
	p.catchUp()
	unlock, err := p.x.shelf.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	short, stop := context.WithTimeout(t.Context(), 5*lockPoll)
	defer stop()
	if err := p.x.Purge(short, []protocol.RunID{run}); !errors.Is(err, context.DeadlineExceeded) || !p.holds("rails") {
		t.Errorf("%v, its words are there: %v", err, p.holds("rails"))
	}
	done := make(chan error, 1)
	go func() { done <- p.x.Purge(t.Context(), []protocol.RunID{run}) }()
	unlock()
	if err := <-done; err != nil || p.holds("rails") {
		t.Errorf("%v, its words are there: %v", err, p.holds("rails"))
	}
}

// performer performs with a function.
type performer func(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error)

func (p performer) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	return p(ctx, turn, emit)
}

// All kinds of texts are found, each where it was said.
func TestAllThatIsSaidIsIndexed(t *testing.T) {
	p := newPlace(t, t.TempDir())
	p.e.Performers[protocol.ActPrompt] = performer(func(ctx context.Context, _ protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
		text := "aword4 " + strings.Repeat("A report of the agent. ", 60)
		return protocol.Conclusion{Text: &text}, emit(ctx, protocol.TextSaid{Content: protocol.NewText(text)}, protocol.Correction{Number: 1, Reasons: protocol.NewText("aword5")})
	})
	p.e.Performers[protocol.ActRun] = performer(func(_ context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
		if turn.Role.Name == "fields" {
			return protocol.Conclusion{Data: protocol.JSON(`{"said":{"in":["aword8\nnext",7711]}}`)}, nil
		}
		long := "aword6 " + strings.Repeat("x y z ", 3<<20/6) + " behindall"
		return protocol.Conclusion{Text: &long}, &protocol.ErrorInfo{Code: "odd", Phase: "run", Message: "aword7 went wrong"}
	})
	yaml := `wf: 1
name: all
inputs: {topic: {type: object}}
defaults: {timeout: 1m}
limits: {cost_usd: 1.00}
roles:
  agent: {prompt: "aword3 You are careful.", model: mock/none}
  fields: {run: "true", output: {type: object, properties: {said: {type: object}}}}
  gate: {ask: "aword9?", choices: [{label: "awordten it", value: go}, {label: Stop, value: stop}]}
  command: {run: "true"}
edges:
  - {from: START, to: agent, prompt: "aword2 now"}
  - {from: agent, to: fields}
  - {from: fields, to: gate}
  - {from: gate, to: command}
  - {from: command, to: END}
`
	program, diags := lang.Load([]byte(yaml), lang.Options{})
	if program == nil {
		t.Fatal(diags)
	}
	run, _, err := p.e.Begin(t.Context(), engine.Launch{Program: program, Source: []byte(yaml), Inputs: []byte(`{"topic":{"deep":["aword1",12.5,true,null]}}`), Workspace: t.TempDir(), Title: "aword0 title", Description: strings.Repeat("long ", 300) + "awordlong"})
	if err != nil {
		t.Fatal(err)
	}
	p.drive(run)
	if _, err := p.e.Answer(t.Context(), run, engine.Reply{By: "ben", Source: "test", Choice: "go"}); err != nil {
		t.Fatal(err)
	}
	p.drive(run)
	p.catchUp()
	for _, c := range []struct{ search, step, kind string }{
		{"aword0", "", "title"}, {"awordlong", "", "title"}, {"aword1", "", "input"}, {"12 5", "", "input"}, {"aword2", "agent#1", "prompt"}, {"aword3", "agent", "prompt"}, {"aword4", "agent#1", "answer"},
		{"aword5", "agent#1", "error"}, {"aword7", "command#1", "error"}, {"aword8 next", "fields#1", "answer"}, {"7711", "fields#1", "answer"}, {"aword9", "gate#1", "question"}, {"awordten", "gate#1", "question"},
	} {
		p.want(c.search, run)
		hits, err := p.find(c.search).Hits(t.Context(), run)
		if err != nil || !slices.ContainsFunc(hits, func(h api.Hit) bool { return h.Step == c.step && h.Kind == c.kind }) {
			t.Errorf("%q: %+v, %v, want %s of %q", c.search, hits, err, c.kind, c.step)
		}
		if c.search == "aword4" && len(hits) != 1 {
			t.Errorf("what an agent said last is its answer: %+v", hits)
		}
	}
	p.want("behindall") // only the beginning of a long text is indexed
}

// A client that goes away while a search commits leaves no lock: neither this process nor another would get it.
func TestACommitThatIsGivenUpFreesTheLock(t *testing.T) {
	p := newPlace(t, t.TempDir())
	p.begin(talk, "rails")
	p.catchUp()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := p.x.commit(ctx, ctx, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	l, err := files.LockNamed(filepath.Join(p.folder(), lockName), os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.FreeLock(l); err != nil {
		t.Error(err)
	}
}

// Of an index that can neither be written nor read a purge does not say that the words are gone.
func TestAPurgeOfAnIndexThatCannotBeRead(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root can write to each directory")
	}
	p := newPlace(t, t.TempDir())
	run := p.begin(talk, "rails")
	p.catchUp()
	p.again()
	p.x.key = func() []byte { return []byte("another key") } // so that it does not know what is in it
	if err := errors.Join(p.e.Cancel(t.Context(), run, "ben", ""), second(p.e.Delete(t.Context(), run, engine.Burial{})), os.Chmod(p.folder(), 0o500)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(p.folder(), 0o700) })
	if err := p.x.Purge(t.Context(), []protocol.RunID{run}); err == nil && p.holds("rails") {
		t.Error("a purge says that it dropped words which are still there")
	}
}

// A purge leaves nothing of an index that is damaged, though it cannot tell what is in it.
func TestAPurgeOfADamagedIndex(t *testing.T) {
	for _, at := range []int{headStart + 3, -3} { // of the head, of the words
		p := newPlace(t, t.TempDir())
		run := p.begin(talk, "rails")
		p.catchUp()
		names, err := filepath.Glob(filepath.Join(p.folder(), "*.seg"))
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		b, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		b[(len(b)+at)%len(b)] ^= 1
		if err := os.WriteFile(names[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		p.again()
		if err := errors.Join(p.e.Cancel(t.Context(), run, "ben", ""), second(p.e.Delete(t.Context(), run, engine.Burial{})), p.x.Purge(t.Context(), []protocol.RunID{run})); err != nil {
			t.Fatal(err)
		}
		if p.holds("rails") {
			t.Errorf("byte %d: its words are still there", at)
		}
	}
}

func second[A, B any](_ A, _ B, err error) error { return err }
