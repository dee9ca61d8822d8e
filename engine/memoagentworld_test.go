package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/agentkit/prompt"
	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/engine/rules/rulestest"
	"wf/protocol"
	"wf/roles"
)

// A process that ends anywhere leaves a run of an agent that ends in the same records and files.
func TestM01AKillAnywhereOfAnAgentEndsInTheSameRecords(t *testing.T) {
	a := newAgents(t, writing)
	yaml := agentFlow("You code.", fileTools)
	reset := func() {
		a.write("a.txt", "one")
		os.RemoveAll(filepath.Join(a.dir, "out"))
	}
	reset()
	first := a.drive(a.start(yaml, ""))
	crashed, reused := 0, 0
	for n := range 14 {
		reset()
		id := a.start(yaml, "")
		a.crashing(n)
		a.set()
		if _, err := a.e.Drive(t.Context(), id, engine.DriveOptions{}); err != nil {
			crashed++
		}
		a.open()
		a.set()
		v := a.drive(id)
		want(t, fmt.Sprint("records after ", n), fmt.Sprint(records(v)), fmt.Sprint(records(first)))
		want(t, fmt.Sprint("files after ", n), a.read("a.txt")+a.read("out/b.txt"), "twonew")
		if how(v) == "reused" {
			reused++
		}
		a.proved(id)
	}
	if crashed < 3 || reused < 8 {
		t.Errorf("%d crashes, %d reused", crashed, reused)
	}
}

// interrupted stops a run as soon as its first visit has taken a result.
func interrupted(a *agents, id protocol.RunID) {
	a.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	a.e.Watch = func(u api.Update) {
		if _, ok := u.Data.(protocol.Reused); ok {
			stop()
		}
	}
	if _, err := a.e.Drive(ctx, id, engine.DriveOptions{}); err == nil {
		a.t.Fatal("it was not interrupted")
	}
	a.e.Watch = nil
}

// An agent that had taken a result when its process ended goes on with it, also where a message came meanwhile; where the
// result is lost it is performed.
func TestM01AnAgentThatHadTakenAResultGoesOn(t *testing.T) {
	for _, c := range []string{"as it was", "a message", "lost", "in the way"} {
		t.Run(c, func(t *testing.T) {
			a := newAgents(t, writing)
			yaml := agentFlow("You code.", fileTools)
			a.write("a.txt", "one")
			first := a.drive(a.start(yaml, ""))
			a.write("a.txt", "one")
			os.RemoveAll(filepath.Join(a.dir, "out"))
			id := a.start(yaml, "")
			interrupted(a, id)
			a.asked()
			calls := 0
			switch c {
			case "a message":
				if err := a.e.Message(t.Context(), id, "test", "wait"); err != nil {
					t.Fatal(err)
				}
			case "lost":
				a.write("a.txt", "one")
				dropMemo(a, a.view(id).Steps[0].Reuse.Key)
				if _, err := cas.GC(t.Context(), inDir(a.e), cas.GCOptions{}); err != nil {
					t.Fatal(err)
				}
				calls = 4
			case "in the way":
				a.write("out/b.txt", "of a person")
				a.write("a.txt", "one")
				calls = 4
			}
			v := a.drive(id)
			want(t, "calls", a.asked(), calls)
			want(t, "record", *v.Steps[0].CID, *first.Steps[0].CID)
			want(t, "files", a.read("a.txt")+a.read("out/b.txt"), "twonew")
			a.proved(id)
		})
	}
}

// Answers of 5 MB and requests of 200 KB are reused.
func TestM01LongTextsOfAnAgent(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 5<<20/16)
	a := newAgents(t, "coder#1: [{text: "+long+", usage: {input: 9}}]\n")
	yaml := strings.Replace(agentFlow("You code."), "prompt: You code.", "prompt: "+strings.Repeat("You code. ", 20_000), 1)
	first := a.drive(a.start(yaml, ""))
	want(t, "first", how(first), "none")
	again := a.drive(a.start(yaml, ""))
	want(t, "again", how(again), "reused")
	want(t, "records", fmt.Sprint(records(again)), fmt.Sprint(records(first)))
	want(t, "text", len(again.Steps[0].Text), len(long))
	a.proved(again.ID)
}

// Two processes that begin the same at once ask the model once.
func TestM01TwoAtOnceAskOnce(t *testing.T) {
	a := newAgents(t, "coder#1: [{text: done, delay: 200ms}]\n")
	ids := []protocol.RunID{a.start(agentFlow("You code."), ""), a.start(agentFlow("You code."), "")}
	s, err := cas.Open(t.Context(), filepath.Join(a.dir, ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	other := &engine.Engine{Store: s, Performers: a.e.Performers, Scratch: a.e.Scratch, Now: a.e.Now}
	var both sync.WaitGroup
	for i, e := range []*engine.Engine{a.e, other} {
		both.Go(func() {
			if _, err := e.Drive(t.Context(), ids[i], engine.DriveOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	got := []string{how(a.view(ids[0])), how(a.view(ids[1]))}
	slices.Sort(got)
	want(t, "both", strings.Join(got, ", "), "none, reused")
	want(t, "calls", a.asked(), 1)
}

// What is changed by others while an agent works is not taken for its work.
func TestM01WhatOthersChangeIsNotKept(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"of one that reads":  {"coder#1: [{tool: read_file, args: {path: a.txt}}, {text: b}]", "none; not stored: a.txt: it changed meanwhile, and no call of a tool named it"},
		"of one that writes": {"coder#1: [{tool: write_file, args: {path: b.txt, content: b}}, {text: b}]", "none; not stored: a.txt: it changed meanwhile, and no call of a tool named it"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgents(t, c.script)
			a.write("a.txt", "one")
			a.asking = func() {
				if a.calls.Load() == 2 {
					a.write("a.txt", "by a person")
				}
			}
			want(t, "first", a.did(agentFlow("You code.", fileTools)), c.want)
		})
	}
}

// An agent that fails, is tried again, or was sent a message is not reused.
func TestM01FurtherAttemptsAndMessagesAreNotReused(t *testing.T) {
	a := newAgents(t, "coder#1: [{error: {status: 400}}, {text: done}]\n")
	yaml := agentFlow("You code.", "retry: {attempts: 2, delay: 1ms, on: [invalid_request]}")
	yaml = strings.Replace(yaml, ", on: [invalid_request]", "", 1)
	v := a.drive(a.start(yaml, ""))
	if v.Status == protocol.Done {
		want(t, "a second attempt", how(v), "cannot")
		want(t, "then", a.did(yaml) != "reused", true)
	}

	b := newAgents(t, answers)
	id := b.start(agentFlow("You code."), "")
	if err := b.e.Message(t.Context(), id, "test", "be short"); err != nil {
		t.Fatal(err)
	}
	sent := b.drive(id)
	want(t, "a message", how(sent), "cannot")
	want(t, "why", sent.Steps[0].Reuse.Reason, "it was sent a message")
	want(t, "without", b.did(agentFlow("You code.")), "none")
}

// A run says whether agents reuse, too.
func TestM02ARunSaysWhetherItsAgentsReuse(t *testing.T) {
	a := newAgents(t, answers)
	offline := a.drive(a.start(agentFlow("You code."), protocol.CacheOffline))
	want(t, "offline without a result", offline.Code, protocol.ErrCacheMiss.Code)
	want(t, "calls", a.asked(), 0)
	want(t, "off", how(a.drive(a.start(agentFlow("You code."), protocol.CacheOff))), "off")
	want(t, "offline with the result of that", how(a.drive(a.start(agentFlow("You code."), protocol.CacheOffline))), "reused")
	want(t, "calls", a.asked(), 1)
}

// The next visit of a conversation compacts behind a reused answer as it does behind one of its own.
func TestM01CompactionBehindAReusedAnswer(t *testing.T) {
	script := `coder#1: [{text: one, usage: {input: 900, output: 3}}]
coder#2: [{text: two, usage: {input: 40000, output: 3}}]
coder#3: [{summary: short}, {text: three, usage: {input: 50, output: 3}}]
`
	yaml := `wf: 1
name: loop
roles:
  coder: {prompt: ` + strings.Repeat("You code. ", 10) + `, model: script/replies.yaml, timeout: 1m, cache: true, compaction: {watermark: 30000, keep: 1}}
  note: {set: {x: "${{ steps.coder.visit }}"}}
edges:
  - {from: START, to: coder, prompt: "` + strings.Repeat("Begin. ", 2000) + `"}
  - {from: coder, to: note}
  - {from: note, to: coder, prompt: again, limit: 2, on_limit: END}
`
	plain := newAgents(t, script)
	off := plain.drive(plain.start(yaml, protocol.CacheOff))
	want(t, "it compacts", len(off.Steps[4].Compactions), 1)
	a := newAgents(t, script)
	want(t, "first", fmt.Sprint(records(a.drive(a.start(yaml, "")))), fmt.Sprint(records(off)))
	again := a.drive(a.start(yaml, ""))
	want(t, "again", how(again), "reused; plain; reused; plain; cannot; plain")
	want(t, "why", again.Steps[4].Reuse.Reason, "its conversation is compacted before it answers")
	want(t, "records", fmt.Sprint(records(again)), fmt.Sprint(records(off)))
	want(t, "compactions", len(again.Steps[4].Compactions), 1)
	a.proved(again.ID)
}

// A run with a reused answer is whole in an archive: another machine proves it, and goes on behind the answer.
func TestM01ARunWithAReusedAnswerIsWholeElsewhere(t *testing.T) {
	script := "coder#1: [{text: first}]\ncoder#2: [{text: second}]\n"
	yaml := `wf: 1
name: loop
roles:
  coder: {prompt: You code., model: script/replies.yaml, timeout: 1m, cache: true}
  note: {set: {x: "${{ steps.coder.visit }}"}}
edges:
  - {from: START, to: coder, prompt: go}
  - {from: coder, to: note}
  - {from: note, to: coder, prompt: again, limit: 1, on_limit: END}
`
	a, other := newAgents(t, script), newAgents(t, script)
	first := a.drive(a.start(yaml, ""))
	again := a.drive(a.start(yaml, ""))
	want(t, "again", how(again), "reused; plain; reused; plain")
	var car bytes.Buffer
	if _, err := cas.Export(t.Context(), &car, inDir(a.e), cas.ExportOptions{}, again.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := cas.Import(t.Context(), &car, inDir(other.e), cas.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	other.proved(again.ID)
	want(t, "it is shown", how(other.view(again.ID)), "reused; plain; reused; plain")
	forked, err := other.e.Fork(t.Context(), again.ID, engine.ForkOptions{At: other.seqOf(again.ID, "coder#2", protocol.EvStepStarted) - 1, By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	f := other.drive(forked)
	want(t, "the fork performs what is not here", how(f), "reused; plain; none; plain")
	want(t, "records", fmt.Sprint(records(f)), fmt.Sprint(records(first)))
	want(t, "there", other.did(yaml), "none; plain; reused; plain") // the fork was performed here, the import was not
}

// What an agent sees is looked at anew each time, however often that was before: files that change, come, go, and change back.
func TestM01WhatWasSeenIsNotBelieved(t *testing.T) {
	a := newAgents(t, answers)
	yaml := agentFlow("You code.", "tools: [read_file]")
	for i := range 400 { // more directories than the nodes of one tree that are kept, when all of them have changed
		a.write(fmt.Sprintf("d%d/f", i), "one")
	}
	want(t, "first", a.did(yaml), "none")
	want(t, "again", a.did(yaml), "reused")
	a.write("d7/f", "two")
	want(t, "changed, with the same length", a.did(yaml), "differs file d7/f")
	a.write("d7/f", "one")
	want(t, "changed back", a.did(yaml), "reused")
	a.write("d7/g", "")
	want(t, "a new one", a.did(yaml), "differs file d7/f") // than the newest result
	os.Remove(filepath.Join(a.dir, "d7/g"))
	os.RemoveAll(filepath.Join(a.dir, "d9"))
	want(t, "gone", a.did(yaml), "differs file d7/g") // than the newest result
	a.write("d9/f", "one")
	want(t, "back", a.did(yaml), "reused")
	for round := range 4 {
		for i := range 400 {
			a.write(fmt.Sprintf("d%d/f", i), fmt.Sprint("round ", round))
		}
		want(t, fmt.Sprint("all changed ", round), a.did(yaml), "differs file d0/f")
		want(t, "and again", a.did(yaml), "reused")
	}
	for i := range 400 {
		a.write(fmt.Sprintf("d%d/f", i), "one")
	}
	want(t, "all back", a.did(yaml), "reused")
}

// A key whose request is not that of the records is found, although its parts fit it.
func TestM01AKeyOfAnotherRequestIsFound(t *testing.T) {
	for name, lie := range map[string]func([]protocol.MemoPart) []protocol.MemoPart{
		"a message": func(p []protocol.MemoPart) []protocol.MemoPart {
			p[len(p)-1] = protocol.NewMemoPart(p[len(p)-1].Name, []byte("another"))
			return p
		},
		"a message less": func(p []protocol.MemoPart) []protocol.MemoPart { return p[:len(p)-1] },
		"a message more": func(p []protocol.MemoPart) []protocol.MemoPart {
			return append(p, protocol.NewMemoPart("message 9 (user)", nil))
		},
		"other tools": func(p []protocol.MemoPart) []protocol.MemoPart {
			p[0] = protocol.NewMemoPart(protocol.MemoTools, []byte("[{}]"))
			return p
		},
	} {
		a := newAgents(t, answers)
		a.e.Performers[protocol.ActPrompt] = liar{speaker{new(int)}, lie}
		yaml := agentFlow("You code.", "output: {type: object}")
		a.drive(a.start(yaml, ""))
		v := a.drive(a.start(yaml, ""))
		want(t, name, how(v), "reused")
		rep, err := a.e.Check(t.Context(), v.ID, rendered)
		if err != nil || len(rep.Findings) != 1 || rep.Findings[0].Kind != "result" || rep.Results.Equal != 0 {
			t.Errorf("%s: %v %+v", name, err, rep)
		}
	}
}

// liar is a speaker that tells another request.
type liar struct {
	speaker
	lie func([]protocol.MemoPart) []protocol.MemoPart
}

func (l liar) Follows(ctx context.Context, turn protocol.Turn, scratch string) (roles.Follows, error) {
	f, err := l.speaker.Follows(ctx, turn, scratch)
	f.Parts = l.lie(f.Parts)
	return f, err
}

// speaker is an agent whose answer is a function of what it is sent.
type speaker struct{ spoken *int }

var one sync.Mutex

func (s speaker) Follows(_ context.Context, turn protocol.Turn, _ string) (roles.Follows, error) {
	m, err := prompt.BuildMessages(turn.History)
	return roles.Follows{Sees: roles.SeesNothing, Parts: protocol.PromptParts(prompt.Bytes(turn.History.Tools, m))}, err
}

func (s speaker) Perform(_ context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
	one.Lock()
	*s.spoken++
	one.Unlock()
	m, err := prompt.BuildMessages(turn.History)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	h := fnv.New64a()
	h.Write([]byte(turn.Role.Name))
	h.Write(prompt.Bytes(turn.History.Tools, m))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	items := []int{}
	for range r.IntN(4) {
		items = append(items, r.IntN(3))
	}
	if strings.HasPrefix(turn.EdgePrompt, "risky") && r.IntN(3) > 0 {
		return protocol.Conclusion{}, &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "bad", Phase: "run", Message: "drawn"}}
	}
	data, err := json.Marshal(map[string]any{"again": r.IntN(2) == 0, "items": items, "n": r.IntN(1000)})
	return protocol.Conclusion{Text: new(fmt.Sprint("said ", h.Sum64())), Data: data}, err
}

// Random workflows of agents conclude the same, whatever of them is reused.
func TestM01ReuseNeverChangesARecord(t *testing.T) {
	reused := 0
	rapid.Check(t, func(rt *rapid.T) {
		yaml := strings.ReplaceAll(rulestest.Flow(rt), "{set: {again: true, items: [1, 2], n: 0}}",
			"{prompt: Speak., model: m/m, timeout: 1m, cache: true, output: {type: object, required: [again, items, n], properties: {again: {type: boolean}, items: {type: array}, n: {type: integer}}}}")
		p, diags := lang.Load([]byte(yaml), lang.Options{File: "random.yaml"})
		if p == nil {
			for _, d := range diags {
				if d.Severity == "error" && d.Code != "WF017" && d.Code != "WF013" {
					rt.Fatalf("%s\n%v", yaml, d)
				}
			}
			rt.Skip("lint refuses it")
		}
		spoken := 0
		b := newBench(t)
		b.e.Performers[protocol.ActPrompt] = speaker{&spoken}
		b.e.Scratch = filepath.Join(b.dir, ".wf", "scratch")
		in, err := p.Inputs(nil)
		if err != nil {
			rt.Fatal(err)
		}
		var conclude []string
		for try, mode := range []string{protocol.CacheOff, "", "", ""} {
			before := spoken
			id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Source: []byte(yaml), Inputs: in, Workspace: b.dir, Cache: mode})
			if err != nil {
				rt.Fatal(err)
			}
			v := b.drive(id)
			if v.Status == protocol.Suspended && strings.Contains(v.Reason, "limits.steps") {
				return // which of the visits that stand side by side it performs depends on their order
			}
			got := conclusions(v)
			if try == 0 {
				conclude = got
			} else if diff := cmp.Diff(conclude, got); diff != "" {
				rt.Fatalf("try %d differs:\n%s\n%s", try, diff, yaml)
			}
			ok := 0
			for _, s := range v.Steps {
				if s.Status == string(protocol.StepOK) && s.Reuse != nil {
					ok++
					if s.Reuse.From != "" {
						reused++
					}
				}
			}
			if try > 0 && v.Reuse != nil && v.Reuse.Performed+v.Reuse.Reused < ok {
				rt.Fatalf("%d visits, and %+v", ok, v.Reuse)
			}
			if failed := len(v.Steps) - ok; (try == 1 || try == 2) && spoken-before > failed {
				rt.Fatalf("%d visits were performed again, %d failed", spoken-before, failed)
			}
			if rep, err := b.e.Check(t.Context(), id, rendered); err != nil || !rep.OK() {
				rt.Fatalf("%v %+v\n%s", err, rep, yaml)
			}
			var entries []protocol.Entry
			for x, err := range b.e.Store.After(t.Context(), id, 0) {
				if err != nil {
					rt.Fatal(err)
				}
				entries = append(entries, x)
			}
			read := func(l protocol.Link) ([]byte, error) { return b.e.Store.Block(t.Context(), l) }
			if err := snapshotAgrees(entries, rapid.IntRange(1, len(entries)).Draw(rt, "snapshot at"), read); err != nil {
				rt.Fatalf("%v\n%s", err, yaml)
			}
			if err := engine.DrivenAgrees(t.Context(), b.e, id); err != nil {
				rt.Fatalf("%v\n%s", err, yaml)
			}
			if try == 2 { // some of what is known is lost
				var drop []cas.Derived
				for i, s := range v.Steps {
					if s.Reuse != nil && i%2 == 0 {
						drop = append(drop, cas.DropMemo(s.Reuse.Key))
					}
				}
				if err := b.e.Store.Commit(t.Context(), cas.Batch{Derived: drop}); err != nil {
					rt.Fatal(err)
				}
			}
		}
	})
	if reused == 0 {
		t.Error("nothing was reused")
	}
}

// Of equal requests, each visit has an answer of its own: a loop that begins anew each time, and the items of a fan-out.
func TestM01EqualRequestsOfOneRunAreAskedEach(t *testing.T) {
	for name, c := range map[string]struct{ script, yaml, again string }{
		"a loop": {"coder#1: [{text: done}]\n", `wf: 1
name: fresh
roles:
  coder: {prompt: You draw., model: script/replies.yaml, timeout: 1m, context: fresh, cache: true}
  note: {set: {x: 1}}
edges:
  - {from: START, to: coder, prompt: draw}
  - {from: coder, to: note}
  - {from: note, to: coder, prompt: draw, limit: 1, on_limit: END}
`, "reused; plain; reused; plain"},
		"a fan-out": {"coder#1[0]: [{text: a}]\ncoder#1[1]: [{text: b}]\n", `wf: 1
name: votes
roles:
  all: {set: {n: [1, 2]}}
  coder: {prompt: You vote., model: script/replies.yaml, timeout: 1m, cache: true}
edges:
  - {from: START, to: all}
  - {from: all, to: coder, for_each: output.n, prompt: vote}
  - {from: coder, to: END}
`, "plain; reused; reused"},
	} {
		a := newAgents(t, c.script)
		first := a.drive(a.start(c.yaml, ""))
		want(t, name, a.asked(), 2)
		again := a.drive(a.start(c.yaml, ""))
		want(t, name, how(again), c.again)
		want(t, name, a.asked(), 0)
		want(t, name, fmt.Sprint(records(again)), fmt.Sprint(records(first)))
	}
}

// What has become a secret since is told by no result.
func TestM01ASecretOfLaterIsNotTold(t *testing.T) {
	a := newAgents(t, "coder#1: [{text: the key is hunter2hunter2}]\n")
	yaml := "secrets: [LATER_KEY]\n" + agentFlow("You code.")
	want(t, "before", a.did(yaml), "none")
	want(t, "again", a.did(yaml), "reused")
	t.Setenv("LATER_KEY", "hunter2hunter2")
	v := a.drive(a.start(yaml, ""))
	want(t, "since", how(v), "cannot; not stored: a secret was hidden in what it read or said")
	want(t, "text", v.Steps[0].Text, "the key is [secret:LATER_KEY]")
}

// A visit that waits for another one of the same key, and finds other files then, is not kept under that key.
func TestM01FilesThatChangeWhileAVisitWaits(t *testing.T) {
	for name, yaml := range map[string]string{
		"an agent":  agentFlow("You code.", fileTools),
		"a command": strings.Replace(role("cat a.txt", "{inputs: []}"), "{inputs: []}", "true", 1),
	} {
		a := newAgents(t, "coder#1: [{tool: read_file, args: {path: a.txt}}, {text: done}]\n")
		a.write("a.txt", "one")
		key := a.drive(a.start(yaml, "")).Steps[0].Reuse.Key
		dropMemo(a, key)
		spot, err := roles.Claim(t.Context(), a.e.Scratch, key[:32])
		if err != nil {
			t.Fatal(err)
		}
		id := a.start(yaml, "")
		over := make(chan error, 1)
		go func() {
			_, err := a.e.Drive(context.Background(), id, engine.DriveOptions{})
			over <- err
		}()
		for !waitsForSpot() {
			runtime.Gosched()
		}
		a.write("a.txt", "by a person")
		spot.Leave()
		if err := <-over; err != nil {
			t.Fatal(err)
		}
		v := a.view(id)
		want(t, name, how(v), "cannot")
		want(t, name, v.Steps[0].Reuse.Reason, "its files changed while another visit of the same key was performed")
		a.write("a.txt", "one")
		want(t, name+", from the files of before", a.did(yaml) != "reused", true)
	}
}

// waitsForSpot reports whether a visit has found its spot taken, and waits: one that is only about to ask for it would not have waited.
func waitsForSpot() bool {
	buf := make([]byte, 1<<20)
	for stack := range bytes.SplitSeq(buf[:runtime.Stack(buf, true)], []byte("\n\n")) {
		head, calls, _ := bytes.Cut(stack, []byte("\n"))
		if bytes.Contains(head, []byte("[select")) && bytes.HasPrefix(calls, []byte("wf/roles.Claim(")) {
			return true
		}
	}
	return false
}

// An agent that was interrupted is not kept, and another model that the run names has another key.
func TestM01AnInterruptedAgentIsNotKept(t *testing.T) {
	a := newAgents(t, writing)
	yaml := agentFlow("You code.", fileTools)
	a.write("a.txt", "one")
	id := a.start(yaml, "")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	a.asking = func() {
		if a.calls.Load() == 2 {
			stop()
		}
	}
	if _, err := a.e.Drive(ctx, id, engine.DriveOptions{}); err == nil {
		t.Fatal("it was not interrupted")
	}
	a.asking = nil
	v := a.drive(id)
	want(t, "resumed", how(v), "cannot")
	want(t, "why", v.Steps[0].Reuse.Reason, "it was interrupted")
	a.write("a.txt", "one")
	os.RemoveAll(filepath.Join(a.dir, "out"))
	want(t, "then", a.did(yaml), "none")
}

func TestM02AnotherModelOfTheRunIsNamed(t *testing.T) {
	a := newAgents(t, answers)
	a.script("other.yaml", answers)
	yaml := agentFlow("You code.")
	want(t, "first", a.did(yaml), "none")
	p := a.load(yaml)
	in, err := p.Inputs(nil)
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := a.e.Begin(t.Context(), engine.Launch{Program: p, Source: []byte(yaml), Inputs: in, Workspace: a.dir, Models: map[string][]string{"": {"script/other.yaml"}}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "another", how(a.drive(id)), "differs model")
}

// An agent that reads is not kept where a command acted beside it, whatever lies there then; one without tools for files is.
func TestM01AnAgentBesideACommandIsNotKept(t *testing.T) {
	for tools, c := range map[string]string{"tools: [read_file]": "not stored: another visit acted in the workspace meanwhile", "max_turns: 3": ""} {
		a := newAgents(t, "reader#1: [{text: done}]\n")
		yaml := `wf: 1
name: beside
roles:
  first: {set: {x: 1}}
  reader: {prompt: You read., model: script/replies.yaml, timeout: 1m, cache: true, ` + tools + `}
  busy: {run: "until [ -e .wf/go ]; do sleep 0.01; done", timeout: 1m}
edges:
  - {from: START, to: first}
  - {from: first, to: [busy, reader]}
  - {from: [busy, reader], to: END}
`
		running := make(chan struct{})
		var once sync.Once
		a.e.Watch = func(u api.Update) {
			if _, ok := u.Data.(protocol.StepStarted); ok && strings.HasPrefix(u.Step, "busy") {
				once.Do(func() { close(running) })
			}
		}
		a.asking = func() {
			<-running
			for n := 0; n == 0; runtime.Gosched() { // it acts
				n = strings.Count(stacks(), "wf/roles.(*Run).Perform(")
			}
		}
		a.e.Watch = watching(a, a.e.Watch)
		v := a.drive(a.start(yaml, ""))
		for _, s := range v.Steps {
			if s.Role == "reader" {
				got := ""
				if s.Reuse.NotStored != "" {
					got = "not stored: " + s.Reuse.NotStored
				}
				want(t, tools, got, c)
			}
		}
	}
}

// watching lets the command end when the agent has.
func watching(a *agents, then func(api.Update)) func(api.Update) {
	return func(u api.Update) {
		then(u)
		if _, ok := u.Data.(protocol.StepCompleted); ok && strings.HasPrefix(u.Step, "reader") {
			a.write(".wf/go", "")
		}
	}
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
