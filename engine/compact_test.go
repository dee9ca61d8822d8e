package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// pingYAML enters a coder n times, and goes on when it fails.
func pingYAML(n int) string {
	return fmt.Sprintf(`
wf: 1
name: ping
roles:
  coder: {prompt: You code., timeout: 1m}
  test: {set: {ok: false}}
  done: {set: {n: 1}}
edges:
  - {from: START, to: coder, prompt: first}
  - {from: coder, to: test}
  - {from: coder, to: test, on: failure, limit: %[1]d, on_limit: done}
  - {from: test, to: coder, limit: %[1]d, on_limit: done, prompt: "round ${{ edge.visit }}"}
  - {from: done, to: END}
`, n-1)
}

// talk renders a conversation for tests: a line for each summary, prompt and answer.
func talk(h protocol.History) []byte {
	past := h.Ancestors()
	lines := []string{"U " + h.Visit.EdgePrompt + "\n"}
	var covers protocol.Link
	summary := ""
	for at := h.Visit.Resumes; at.Defined() && at != covers; {
		p, _, _ := past.Get(at)
		switch {
		case p.Compaction == nil:
			lines = append(lines, "U "+p.EdgePrompt+"\nA "+p.Text+"\n")
			at = p.Resumes
		default:
			if !covers.Defined() {
				covers, summary = p.Compaction.Covers, "S "+p.Compaction.Summary+p.Inject+"\n"
			}
			at = p.Compaction.Prior
		}
	}
	slices.Reverse(lines)
	return []byte(summary + strings.Join(lines, ""))
}

func talkPrompter(t protocol.Turn) ([]byte, protocol.Link, error) {
	b := talk(t.History)
	return b, cas.Raw(b).Link, nil
}

// talker performs visits as an agent does that compacts where it is told to, before its first
// call or after it.
type talker struct {
	before, inside func(visit int) bool
	fails          func(visit int) bool
	keep           int
	asks           func() // called before a compaction is asked for

	mu   sync.Mutex
	told map[string]int64 // LastUsage by step
}

func (a *talker) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	a.mu.Lock()
	if a.told == nil {
		a.told = map[string]int64{}
	}
	a.told[turn.Step.String()] = turn.LastUsage
	a.mu.Unlock()

	h, compacted, calls := turn.History, false, int64(0)
	for _, e := range turn.Transcript {
		compacted = compacted || e.Type == protocol.EvCompacted
		if e.Type == protocol.EvUsage {
			calls++
		}
	}
	say := func(data ...protocol.Data) error {
		calls++
		n := 1000*int64(turn.Visit) + calls
		return emit(ctx, append(data, protocol.Usage{Model: "m", Input: &n})...)
	}
	prompt := func() protocol.Data { return protocol.PromptSent{Digest: cas.Raw(talk(h)).Link.String(), Model: "m"} }
	compact := func() error {
		if compacted {
			return nil
		}
		compacted = true
		d, ok := a.draft(&h)
		if !ok {
			return nil
		}
		if a.asks != nil {
			a.asks()
		}
		kind := protocol.Usage{Model: "m", Kind: protocol.UsageCompaction}
		return emit(ctx, kind, d)
	}
	if a.before != nil && a.before(turn.Visit) && calls == 0 {
		if err := compact(); err != nil {
			return protocol.Conclusion{}, err
		}
	}
	if err := emit(ctx, prompt()); err != nil {
		return protocol.Conclusion{}, err
	}
	if err := say(protocol.TextSaid{Content: protocol.NewText("working")}); err != nil {
		return protocol.Conclusion{}, err
	}
	if a.inside != nil && a.inside(turn.Visit) {
		if err := compact(); err != nil {
			return protocol.Conclusion{}, err
		}
		if err := emit(ctx, prompt()); err != nil {
			return protocol.Conclusion{}, err
		}
	}
	if a.fails != nil && a.fails(turn.Visit) {
		return protocol.Conclusion{}, &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "no", Phase: "agent", Message: "no"}}
	}
	text := fmt.Sprintf("answer %d", turn.Visit)
	return protocol.Conclusion{Text: &text}, nil
}

func recordOf(past *protocol.Records, l protocol.Link) *protocol.Past {
	p, _, _ := past.Get(l)
	return p
}

// draft covers all visits but the newest ones, and moves h to the summary.
func (a *talker) draft(h *protocol.History) (protocol.CompactionDraft, bool) {
	past := h.Ancestors()
	var chain []protocol.Link
	var covers protocol.Link
	for at := h.Visit.Resumes; at.Defined() && at != covers; {
		p, _, _ := past.Get(at)
		if p.Compaction != nil {
			covers, at = p.Compaction.Covers, p.Compaction.Prior
			continue
		}
		chain, at = append(chain, at), p.Resumes
	}
	if len(chain) <= a.keep {
		return protocol.CompactionDraft{}, false
	}
	d := protocol.CompactionDraft{Covers: chain[a.keep], Summary: fmt.Sprintf("up to %s", recordOf(past, chain[a.keep]).Text), Inject: "!",
		Compacted: protocol.Compacted{Scope: protocol.ScopeConversation, TokensBefore: 10, TokensAfter: 2}}
	c := protocol.Past{CID: cas.Raw([]byte("draft")).Link, Compaction: &protocol.PastCompaction{Prior: h.Visit.Resumes, Covers: d.Covers, Summary: d.Summary}, Inject: "!"}
	h.Past = append(h.Past[:len(h.Past):len(h.Past)], c)
	h.Visit.Resumes = c.CID
	d.Compacted.Digest = cas.Raw(talk(*h)).Link.String()
	return d, true
}

func on(visits ...int) func(int) bool { return func(n int) bool { return slices.Contains(visits, n) } }

// entries are the journal of a run.
func (b *bench) entries(id protocol.RunID) []protocol.Entry {
	b.t.Helper()
	var out []protocol.Entry
	for x, err := range b.e.Store.After(context.Background(), id, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

// sound checks a run: decisions and prompts follow from the records, and snapshots agree
// wherever they are taken.
func (b *bench) sound(id protocol.RunID) *engine.CheckReport {
	b.t.Helper()
	ctx := context.Background()
	r, err := b.e.Check(ctx, id, talkPrompter)
	if err != nil || !r.OK() {
		b.t.Fatalf("check: %v %+v", err, r)
	}
	entries := b.entries(id)
	read := func(l protocol.Link) ([]byte, error) { return b.e.Store.Block(ctx, l) }
	for cut := 1 + len(entries)%5; cut <= len(entries); cut += 1 + len(entries)/8 {
		if err := snapshotAgrees(entries, cut, read); err != nil {
			b.t.Fatalf("snapshot after event %d: %v", cut, err)
		}
	}
	return r
}

func (b *bench) prompt(id protocol.RunID, step string) string {
	b.t.Helper()
	return string(talk(b.history(id, step)))
}

func (b *bench) history(id protocol.RunID, step string) protocol.History {
	b.t.Helper()
	all, err := b.e.HistoriesOf(context.Background(), id, step)
	if err != nil {
		b.t.Fatal(err)
	}
	return all[0]
}

func TestB06LaterVisitsResumeTheCompaction(t *testing.T) {
	b := newBench(t)
	a := &talker{before: on(4), inside: on(6), keep: 1}
	b.e.Performers[protocol.ActPrompt] = a
	id, v := b.run(pingYAML(7), nil)
	if v.Status != protocol.Done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	for step, want := range map[string]string{
		"coder#3": "U first\nA answer 1\nU round 1\nA answer 2\nU round 2\n",
		"coder#4": "S up to answer 2!\nU round 2\nA answer 3\nU round 3\n",
		"coder#5": "S up to answer 2!\nU round 2\nA answer 3\nU round 3\nA answer 4\nU round 4\n",
		"coder#6": "S up to answer 4!\nU round 4\nA answer 5\nU round 5\n",
		"coder#7": "S up to answer 4!\nU round 4\nA answer 5\nU round 5\nA answer 6\nU round 6\n",
	} {
		if got := b.prompt(id, step); got != want {
			t.Errorf("%s is sent\n%swant\n%s", step, got, want)
		}
	}
	r := b.sound(id)
	// One prompt a visit, another for the visit that compacted inside, and the two compactions.
	if r.Prompts != (engine.Tally{Checked: 7 + 1 + 2, Equal: 10}) || r.Prefixes != (engine.Tally{Checked: 7 - 1 - 1, Equal: 5}) {
		t.Errorf("prompts %+v, prefixes %+v", r.Prompts, r.Prefixes)
	}
	want := map[string]int64{"coder#1": 0, "coder#2": 1001, "coder#3": 2001, "coder#4": 3001, "coder#5": 4001, "coder#6": 5001, "coder#7": 0}
	if d := cmp.Diff(want, a.told); d != "" {
		t.Errorf("LastUsage: %s", d)
	}

	c := v.Steps[6].Compactions
	if v.Steps[6].ID != "coder#4" || len(c) != 1 || c[0].Record == nil || *v.Steps[6].Resumes != *c[0].Record {
		t.Fatalf("%+v", v.Steps[6])
	}
	if c[0].Covers != 2 || c[0].Prior != 3 || c[0].Summary != "up to answer 2" || c[0].TokensBefore != 10 || c[0].TokensAfter != 2 {
		t.Errorf("got %+v", c[0])
	}
}

func TestWhatAFailedVisitCompactedStaysSo(t *testing.T) {
	b := newBench(t)
	b.e.Performers[protocol.ActPrompt] = &talker{before: on(3), fails: func(visit int) bool { return visit == 3 }}
	id, v := b.run(pingYAML(4), nil)
	var seen []string
	for _, s := range v.Steps {
		if s.Role == "coder" {
			seen = append(seen, fmt.Sprint(s.ID, " ", s.Visit, " ", s.Status))
		}
	}
	// The visit after a failed one has its number, and fails as it did.
	if d := cmp.Diff([]string{"coder#1 1 ok", "coder#2 2 ok", "coder#3 3 failed", "coder#4 3 failed"}, seen); d != "" {
		t.Error(d)
	}
	if got, want := b.prompt(id, "coder#4"), "S up to answer 2!\nU round 3\n"; got != want {
		t.Errorf("coder#4 is sent\n%swant\n%s", got, want)
	}
	b.sound(id)
}

// armed opens the store anew, as a process that dies before its n-th operation on disk after
// it was armed.
func (b *bench) armed(n int) (arm func()) {
	b.open()
	if err := inDir(b.e).Close(); err != nil {
		b.t.Fatal(err)
	}
	var mu sync.Mutex
	left := -1
	s, err := cas.Open(context.Background(), filepath.Join(b.dir, ".wf"), cas.Options{Before: func(cas.Op) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case left == 0:
			return errCrash
		case left > 0:
			left--
		}
		return nil
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close() })
	b.e.Store = s
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if left < 0 {
			left = n
		}
	}
}

// A process that dies while it compacts leaves the old context or the new one, and what is concluded in
// the end is the same.
func TestB06AKillInTheMiddleLeavesTheOldContext(t *testing.T) {
	var want []string
	whole := newBench(t)
	whole.e.Performers[protocol.ActPrompt] = &talker{before: on(3), inside: on(4), keep: 1}
	_, v := whole.run(pingYAML(5), nil)
	want = conclusions(v)

	old, moved := 0, 0
	for n := range 12 {
		b := newBench(t)
		ctx := context.Background()
		p := b.load(pingYAML(5))
		in, err := p.Inputs(nil)
		if err != nil {
			t.Fatal(err)
		}
		id, _, err := b.e.Begin(ctx, engine.Launch{Program: p, Source: []byte(pingYAML(5)), Inputs: in, Workspace: whole.dir})
		if err != nil {
			t.Fatal(err)
		}
		arm := b.armed(n)
		b.e.Performers[protocol.ActPrompt] = &talker{before: on(3), inside: on(4), keep: 1, asks: arm}
		_, err = b.e.Drive(ctx, id, engine.DriveOptions{})
		b.open()
		if !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		compactions := 0
		for _, s := range b.view(id).Steps {
			compactions += len(s.Compactions)
			if s.Visit != 3 || s.Role != "coder" {
				continue
			}
			got := b.prompt(id, s.ID)
			switch len(s.Compactions) {
			case 0:
				old++
				if got != "U first\nA answer 1\nU round 1\nA answer 2\nU round 2\n" {
					t.Errorf("killed at %d: the old context is %q", n, got)
				}
			default:
				moved++
				if got != "S up to answer 1!\nU round 1\nA answer 2\nU round 2\n" {
					t.Errorf("killed at %d: the new context is %q", n, got)
				}
			}
		}
		b.e.Performers[protocol.ActPrompt] = &talker{before: on(3), inside: on(4), keep: 1}
		v := b.drive(id)
		if d := cmp.Diff(want, conclusions(v)); d != "" {
			t.Fatalf("killed at %d: %s", n, d)
		}
		again := 0
		for _, s := range v.Steps {
			again += len(s.Compactions)
		}
		if again != 2 || compactions > 2 {
			t.Errorf("killed at %d: compacted %d times", n, again)
		}
		b.sound(id)
	}
	if old == 0 || moved == 0 {
		t.Errorf("%d kills found the old context, %d the new one", old, moved)
	}
}

func TestRandomCompactionsKeepThePrefix(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(rt, "visits")
		draw := func(name string) func(int) bool {
			return on(rapid.SliceOfN(rapid.IntRange(2, n), 0, 4).Draw(rt, name)...)
		}
		b := newBench(t)
		b.e.Performers[protocol.ActPrompt] = &talker{before: draw("before"), inside: draw("inside"), fails: on(rapid.IntRange(0, 2*n).Draw(rt, "fails")),
			keep: rapid.IntRange(0, 3).Draw(rt, "keep")}
		id, v := b.run(pingYAML(n), nil)
		if v.Status != protocol.Done {
			rt.Fatalf("%s: %s", v.Status, v.Reason)
		}
		b.sound(id)
	})
}

func TestACompactionOfNothingIsRefused(t *testing.T) {
	b := newBench(t)
	refused := make(chan error, 2)
	b.e.Performers[protocol.ActPrompt] = performerFunc(func(ctx context.Context, _ protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
		err := emit(ctx, protocol.CompactionDraft{Summary: "nothing", Compacted: protocol.Compacted{Scope: protocol.ScopeConversation}})
		refused <- err
		text := "on"
		return protocol.Conclusion{Text: &text}, nil
	})
	id, v := b.run(pingYAML(2), nil)
	if err := <-refused; err == nil || !strings.Contains(err.Error(), "coder#1: it goes on with no conversation") {
		t.Errorf("got %v", err)
	}
	if v.Status != protocol.Done || len(v.Steps[0].Compactions) != 0 {
		t.Errorf("%s %+v", v.Status, v.Steps[0])
	}
	b.sound(id)
}

type performerFunc func(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error)

func (f performerFunc) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	return f(ctx, turn, emit)
}

// told notes what a performer is told of windows, and has one visit learn another.
type told struct {
	mu      sync.Mutex
	windows map[string]int64 // of the model m, by step
}

func (a *told) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	a.mu.Lock()
	if a.windows == nil {
		a.windows = map[string]int64{}
	}
	a.windows[turn.Step.String()] = turn.Windows["m"]
	a.mu.Unlock()
	text := "answer"
	u := protocol.Usage{Model: "m"}
	if learnt := map[int]int64{2: 9000, 4: 7000, 5: 8000}[turn.Visit]; learnt > 0 {
		u.Stop, u.Window, u.Held = protocol.StopOverflow, learnt, learnt+1
	}
	if err := emit(ctx, u); err != nil {
		return protocol.Conclusion{}, err
	}
	return protocol.Conclusion{Text: &text}, emit(ctx, protocol.TextSaid{Content: protocol.NewText(text)}, protocol.Usage{Model: "m"})
}

func TestF04ALearntWindowReachesLaterVisitsAndSnapshots(t *testing.T) {
	b := newBench(t)
	a := &told{}
	b.e.Performers[protocol.ActPrompt] = a
	id, v := b.run(pingYAML(6), nil)
	if v.Status != protocol.Done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	want := map[string]int64{"coder#1": 0, "coder#2": 0, "coder#3": 9000, "coder#4": 9000, "coder#5": 7000, "coder#6": 7000}
	if d := cmp.Diff(want, a.windows); d != "" {
		t.Error(d)
	}
	entries := b.entries(id)
	read := func(l protocol.Link) ([]byte, error) { return b.e.Store.Block(t.Context(), l) }
	for cut := 1; cut <= len(entries); cut++ {
		if err := snapshotAgrees(entries, cut, read); err != nil {
			t.Fatalf("snapshot after event %d: %v", cut, err)
		}
	}
}
