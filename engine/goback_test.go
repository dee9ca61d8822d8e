package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// backYAML is a conversation whose answers append their number to many files.
const backYAML = `
wf: 1
name: talk
workspace: {track: true}
limits: {steps: 1000}
roles:
  you: {ask: ""}
  bot: {run: 'n=$(($(cat n 2>/dev/null || echo 0)+1)); echo $n > n; mkdir -p d; for i in $(seq %d); do echo $n >> d/$i; done'}
edges:
  - {from: START, to: you}
  - {from: you, to: END, when: output.text == "/end"}
  - {from: you, to: bot, prompt: "${{ output.text }}"}
  - {from: bot, to: you, limit: 100}
`

// talked is a conversation with answers.
func talked(t *testing.T, b *bench, files int, said ...string) protocol.RunID {
	t.Helper()
	id, _ := b.run(fmt.Sprintf(backYAML, files), nil)
	for _, text := range said {
		b.says(id, text)
	}
	return id
}

func (b *bench) says(run protocol.RunID, text string) {
	b.t.Helper()
	if _, err := b.e.Answer(context.Background(), run, engine.Reply{Text: text}); err != nil {
		b.t.Fatal(err)
	}
	if v := b.drive(run); v.Status != protocol.Waiting {
		b.t.Fatalf("%s %s", v.Status, v.Reason)
	}
}

// before says how a conversation goes back to before the n-th question, from 1.
func (b *bench) before(run protocol.RunID, n int) engine.Going {
	b.t.Helper()
	step := fmt.Sprintf("you#%d", n)
	_, trees := b.looks(run) // start, then before and after each answer
	return engine.Going{Chat: protocol.ChatMoved{What: protocol.ChatUndo, At: b.seqOf(run, step, protocol.EvStepStarted) - 1, Step: step}, To: trees[2*n-1], By: "test"}
}

func (b *bench) goesBack(run protocol.RunID, o engine.Going) *api.FilesRestored {
	b.t.Helper()
	v, err := b.e.GoBack(context.Background(), run, o)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// forks are the runs but one.
func (b *bench) forks(run protocol.RunID) (out []protocol.RunID) {
	b.t.Helper()
	heads, err := b.e.Store.Heads(context.Background(), protocol.RunHead(""))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, h := range heads {
		if id := protocol.RunOf(h.Name); id != run {
			out = append(out, id)
		}
	}
	return out
}

func (b *bench) tip(run protocol.RunID) protocol.Link {
	b.t.Helper()
	head, _, err := b.e.Store.Tip(context.Background(), run)
	if err != nil {
		b.t.Fatal(err)
	}
	return head
}

// steppedTo is the newest step of a run, and how many there are.
func (b *bench) steppedTo(run protocol.RunID) string {
	b.t.Helper()
	v := b.view(run)
	return fmt.Sprintf("%s of %d", v.Steps[len(v.Steps)-1].ID, len(v.Steps))
}

// Files and conversation go back, further back, and forth again; the runs that are left stay as they were.
func TestC05AConversationGoesBackWithItsFiles(t *testing.T) {
	b := newBench(t)
	run := talked(t, b, 3, "one", "two")
	two, tip := b.there(), b.tip(run)
	v := b.goesBack(run, b.before(run, 2))
	if v.State != protocol.RestoreDone || v.Next == "" || len(v.Changed) != 4 || len(v.Conflicts) > 0 {
		t.Errorf("%+v", v)
	}
	one := map[string]string{"n": "1\n", "d/1": "1\n", "d/2": "1\n", "d/3": "1\n"}
	b.same(one)
	b.drive(v.Next)
	if got := b.steppedTo(v.Next); got != "you#2 of 3" {
		t.Errorf("the conversation goes on at %s", got)
	}
	last := b.goesBack(v.Next, b.before(v.Next, 1))
	b.drive(last.Next)
	b.same(map[string]string{})
	if got := b.steppedTo(last.Next); got != "you#1 of 1" {
		t.Errorf("the conversation goes on at %s", got)
	}
	b.collect()

	forth := b.goesBack(last.Next, engine.Going{Chat: protocol.ChatMoved{What: protocol.ChatRedo, Next: v.Next}, To: link(t, last.Undo)})
	b.same(one)
	if forth.Next != v.Next {
		t.Errorf("forth: %+v", forth)
	}
	b.goesBack(v.Next, engine.Going{Chat: protocol.ChatMoved{What: protocol.ChatRedo, Next: run}, To: link(t, v.Undo)})
	b.same(two)
	if b.tip(run) != tip {
		t.Error("the run that was left has moved")
	}
	if n := len(b.forks(run)); n != 2 {
		t.Errorf("%d forks", n)
	}
	// it goes on as if nothing had been
	b.says(run, "three")
	if got := b.there()["d/3"]; got != "1\n2\n3\n" {
		t.Errorf("d/3 is %q", got)
	}
	b.goesBack(run, b.before(run, 3))
	b.same(two)
	b.collect()
}

// The restorings of a workspace are told, the newest first.
func TestC05TheWaysBackAreKept(t *testing.T) {
	b := newBench(t)
	run := talked(t, b, 1, "one", "two")
	v := b.goesBack(run, b.before(run, 2))
	w := b.goesBack(v.Next, b.before(v.Next, 1))
	var got []string
	err := b.e.Restorings(t.Context(), b.dir, func(_ protocol.Link, r *protocol.FilesRestore) bool {
		got = append(got, r.State)
		if r.State == protocol.RestoreDone && (r.Chat.Next != v.Next && r.Chat.Next != w.Next || r.Chat.At == 0 || r.Chat.Seq == 0) {
			t.Errorf("%+v", r.Chat)
		}
		return true
	})
	if want := []string{"restored", "begun", "restored", "begun"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

// Whatever operation on disk is the last of a process: files and conversation agree, and there is one fork or none.
func TestC05AProcessThatDiesGoingBackLeavesNoTwoForks(t *testing.T) {
	b := newBench(t)
	run := talked(t, b, 3, "one", "two")
	o, two := b.before(run, 2), b.there()
	one := map[string]string{"n": "1\n", "d/1": "1\n", "d/2": "1\n", "d/3": "1\n"}
	open, ended := 0, false
	for n := 0; !ended; n++ {
		arm := b.armed(n)
		arm()
		v, err := b.e.GoBack(t.Context(), run, o)
		if err == nil && v.Next == "" {
			t.Fatalf("operation %d: %+v", n, v)
		}
		ended = err == nil
		inDir(b.e).Close()
		b.open()
		in, err := b.e.RestoresIn(t.Context(), b.dir)
		if err != nil {
			t.Fatal(err)
		}
		forks := b.forks(run)
		if in != "" {
			open++
			if len(forks) > 0 {
				t.Fatalf("operation %d: the fork is there before the way back has ended", n)
			}
			back := open%2 == 0
			if v, err = b.e.GoOnRestoring(t.Context(), b.dir, back, nil); err != nil || len(v.Conflicts) > 0 {
				t.Fatalf("operation %d: %+v, %v", n, v, err)
			}
			if forks = b.forks(run); back == (len(forks) == 1) {
				t.Fatalf("operation %d, back %t: forks %v", n, back, forks)
			}
		}
		if len(forks) == 0 {
			b.same(two)
			continue
		}
		b.same(one)
		b.goesBack(forks[0], engine.Going{Chat: protocol.ChatMoved{What: protocol.ChatRedo, Next: run}, To: b.undo()})
		b.same(two)
		b.deletes(forks[0])
		b.collect()
	}
	if open < 2 {
		t.Errorf("%d of them died between", open)
	}
}

func (b *bench) deletes(run protocol.RunID) {
	b.t.Helper()
	err := b.e.Cancel(context.Background(), run, "test", "")
	if err == nil {
		_, _, err = b.e.Delete(context.Background(), run, engine.Burial{})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// undo is what brings back what was there before the newest way back.
func (b *bench) undo() (l protocol.Link) {
	b.t.Helper()
	err := b.e.Restorings(context.Background(), b.dir, func(_ protocol.Link, r *protocol.FilesRestore) bool {
		l = link(b.t, r.Undo)
		return false
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

// Interrupted behind any file it goes on, or back; until then nothing is begun or goes on in that workspace.
func TestC05AnOpenWayBackHoldsTheWorkspace(t *testing.T) {
	b := newBench(t)
	run := talked(t, b, 5, "one", "two")
	o, two := b.before(run, 2), b.there()
	for at := 1; at <= 5; at++ {
		ctx, cancel := context.WithCancel(t.Context())
		o.Each = func(done, _ int) {
			if done == at {
				cancel()
			}
		}
		_, err := b.e.GoBack(ctx, run, o)
		if open, ok := errors.AsType[*engine.RestoreOpenError](err); !ok || !errors.Is(open, context.Canceled) {
			t.Fatalf("behind file %d: %v", at, err)
		}
		if _, err := b.e.GoBack(t.Context(), run, o); !errors.Is(err, protocol.ErrRestoreOpen) {
			t.Errorf("another way back: %v", err)
		}
		if _, err := b.e.Drive(t.Context(), run, engine.DriveOptions{}); !errors.Is(err, protocol.ErrRestoreOpen) {
			t.Errorf("the run goes on: %v", err)
		}
		p := b.load(twoSteps)
		if _, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Source: []byte(twoSteps), Inputs: protocol.JSON("{}"), Workspace: b.dir}); !errors.Is(err, protocol.ErrRestoreOpen) {
			t.Errorf("a run begins: %v", err)
		}
		v, err := b.e.GoOnRestoring(t.Context(), b.dir, at%2 == 0, nil)
		if err != nil || len(v.Conflicts) > 0 || (v.Next == "") != (at%2 == 0) {
			t.Fatalf("%+v, %v", v, err)
		}
		if v.Next != "" {
			if got := b.there()["n"]; got != "1\n" {
				t.Errorf("n is %q", got)
			}
			b.goesBack(v.Next, engine.Going{Chat: protocol.ChatMoved{What: protocol.ChatRedo, Next: run}, To: link(t, v.Undo)})
		}
		b.same(two)
	}
}

// What nothing has recorded stops both before anything is written, or on the way; by Force it is kept, and comes back.
func TestC05AConflictStopsFilesAndConversation(t *testing.T) {
	b := newBench(t)
	run := talked(t, b, 3, "one", "two")
	o, two := b.before(run, 2), b.there()
	b.lay(map[string]string{"d/2": "person\n", "d/9": "mine\n"}) // d/9 is in no way
	mine := b.there()
	v := b.goesBack(run, o)
	if v.State != api.RestorePlanned || v.Next != "" || len(v.Conflicts) != 1 || v.Conflicts[0].Path != "d/2" || len(v.Changed) > 0 {
		t.Errorf("%+v", v)
	}
	b.same(mine)
	h, err := b.e.Store.Head(t.Context(), protocol.RestoreHead("", b.dir))
	if err != nil || h.Link.Defined() || len(b.forks(run)) > 0 {
		t.Errorf("something was written: %v, %v", h, err)
	}

	o.Force = true
	v = b.goesBack(run, o)
	if v.Next == "" || !slices.Equal(v.Kept, []string{"d/2"}) {
		t.Errorf("%+v", v)
	}
	b.same(map[string]string{"n": "1\n", "d/1": "1\n", "d/2": "1\n", "d/3": "1\n", "d/9": "mine\n"})
	b.collect()
	b.goesBack(v.Next, engine.Going{Chat: protocol.ChatMoved{What: protocol.ChatRedo, Next: run}, To: link(t, v.Undo)})
	b.same(mine)

	// an editor saves while files change
	b.lay(two)
	b.restores(run, engine.Restoration{To: o.To, Force: true}) // so that d/2 is as it was recorded
	b.restores(run, engine.Restoration{To: b.last(run), Force: true})
	now := b.there()
	o.Force = false
	o.Each = func(done, of int) {
		if done == of {
			b.lay(map[string]string{"d/3": "saved just now\n"})
		}
	}
	v = b.goesBack(run, o)
	if v.State != protocol.RestoreAborted || v.Next != "" || len(v.Conflicts) != 1 || v.Conflicts[0].Path != "d/3" {
		t.Errorf("%+v", v)
	}
	now["d/3"] = "saved just now\n"
	b.same(now)
	if in, err := b.e.RestoresIn(t.Context(), b.dir); in != "" || err != nil {
		t.Errorf("it is open in %q, %v", in, err)
	}
	if n := len(b.forks(run)); n != 1 {
		t.Errorf("%d forks", n)
	}
}

// last is the newest tree of the last attempt of a run.
func (b *bench) last(run protocol.RunID) protocol.Link {
	_, trees := b.looks(run)
	return trees[len(trees)-1]
}

// A directory that holds what was never recorded stays, and stops nothing.
func TestC05ADirectoryWithIgnoredFilesStopsNothing(t *testing.T) {
	b := newBench(t)
	b.lay(map[string]string{".gitignore": "*.log\n"})
	run := talked(t, b, 2, "one")
	b.lay(map[string]string{"d/x.log": "never recorded"})
	v := b.goesBack(run, b.before(run, 1))
	if v.Next == "" || len(v.Conflicts) != 1 || v.Conflicts[0].Path != "d" {
		t.Errorf("%+v", v)
	}
	b.same(map[string]string{".gitignore": "*.log\n", "d/x.log": "never recorded"})
	b.goesBack(v.Next, engine.Going{Chat: protocol.ChatMoved{What: protocol.ChatRedo, Next: run}, To: link(t, v.Undo)})
	b.same(map[string]string{".gitignore": "*.log\n", "d/x.log": "never recorded", "n": "1\n", "d/1": "1\n", "d/2": "1\n"})

	// but a file that takes its place is in the way of it
	b.says(run, "two")
	if err := errors.Join(os.Rename(filepath.Join(b.dir, "d"), filepath.Join(b.dir, "e")), os.WriteFile(filepath.Join(b.dir, "d"), []byte("person"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if v := b.goesBack(run, b.before(run, 2)); v.Next != "" || len(v.Conflicts) == 0 {
		t.Errorf("%+v", v)
	}
}

// Where a run records no files the conversation goes alone, in one commit.
func TestC05AConversationWithoutFilesGoesAlone(t *testing.T) {
	b := newBench(t)
	yaml := strings.Replace(fmt.Sprintf(backYAML, 2), "track: true", "track: false", 1)
	run, _ := b.run(yaml, nil)
	b.says(run, "one")
	was := b.there()
	o := engine.Going{Chat: protocol.ChatMoved{What: protocol.ChatUndo, At: b.seqOf(run, "you#1", protocol.EvStepStarted) - 1}}
	v := b.goesBack(run, o)
	b.same(was)
	b.drive(v.Next)
	if got := b.steppedTo(v.Next); got != "you#1 of 1" || v.From != "" {
		t.Errorf("%s, %+v", got, v)
	}
	b.goesBack(v.Next, engine.Going{Chat: protocol.ChatMoved{What: protocol.ChatRedo, Next: run}})
	var states []string
	err := b.e.Restorings(t.Context(), b.dir, func(_ protocol.Link, r *protocol.FilesRestore) bool {
		states = append(states, r.State)
		return true
	})
	if err != nil || !slices.Equal(states, []string{"restored", "restored"}) {
		t.Errorf("%q, %v", states, err)
	}
}

// A message that waited when it was taken back is not read again by the fork.
func TestC05AMessageThatWaitedIsTakenBack(t *testing.T) {
	b := newBench(t)
	run := talked(t, b, 1)
	_, err := b.e.Answer(t.Context(), run, engine.Reply{Text: "first"})
	if err == nil {
		err = b.e.Message(t.Context(), run, "ada", "queued")
	}
	if err != nil {
		t.Fatal(err)
	}
	b.drive(run)
	// you#1 was answered, bot#1 acted, and you#2 was answered by the message that waited
	if got := b.steppedTo(run); got != "you#3 of 5" {
		t.Fatal(got)
	}
	o := b.before(run, 2)
	o.Chat.Messages = 1
	v := b.goesBack(run, o)
	if got := b.drive(v.Next); got.Status != protocol.Waiting || b.steppedTo(v.Next) != "you#2 of 3" {
		t.Errorf("%s at %s", got.Status, b.steppedTo(v.Next))
	}
	b.checked(v.Next)
	o.Chat.Messages = 2
	if _, err := b.e.GoBack(t.Context(), run, o); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("more messages than waited: %v", err)
	}
}

// It is refused while a run is driven, and where the other one is.
func TestC05WhenAConversationDoesNotGoBack(t *testing.T) {
	b := newBench(t)
	run := talked(t, b, 1, "one")
	o := b.before(run, 1)
	claim, err := b.e.Store.Claim(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.e.GoBack(t.Context(), run, o); !errors.Is(err, protocol.ErrRunLive) {
		t.Errorf("while it is driven: %v", err)
	}
	if err := claim.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := b.goesBack(run, o)
	forth := engine.Going{Chat: protocol.ChatMoved{What: protocol.ChatRedo, Next: run}, To: link(t, v.Undo)}
	if claim, err = b.e.Store.Claim(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if _, err := b.e.GoBack(t.Context(), v.Next, forth); !errors.Is(err, protocol.ErrRunLive) {
		t.Errorf("while the other one is driven: %v", err)
	}
	if err := claim.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	forth.Chat.Next = "NOSUCHRUN1"
	if _, err := b.e.GoBack(t.Context(), v.Next, forth); !errors.Is(err, protocol.ErrUnknownRun) {
		t.Errorf("to no run: %v", err)
	}
}

// A run that was cut off, and would go on by itself, is suspended when it is left.
func TestC05WhatWasTakenBackActsNoMoreUnasked(t *testing.T) {
	b := newBench(t)
	run := talked(t, b, 1, "one")
	if _, err := b.e.Answer(t.Context(), run, engine.Reply{Text: "two"}); err != nil { // nothing drives it
		t.Fatal(err)
	}
	o := engine.Going{Chat: protocol.ChatMoved{What: protocol.ChatUndo, At: b.seqOf(run, "you#2", protocol.EvStepStarted) - 1}, By: "ada"}
	v := b.goesBack(run, o)
	if was := b.view(run); was.Status != protocol.Suspended || was.Code != "" || was.Reason == "" {
		t.Errorf("%s %q %q", was.Status, was.Code, was.Reason)
	}
	if got := b.drive(v.Next); got.Status != protocol.Waiting {
		t.Errorf("the fork is %s", got.Status)
	}
	waits := b.tip(v.Next)
	b.goesBack(v.Next, engine.Going{Chat: protocol.ChatMoved{What: protocol.ChatRedo, Next: run}})
	if b.tip(v.Next) != waits {
		t.Error("a run that waits has moved")
	}

	timed, _ := b.run(strings.Replace(fmt.Sprintf(backYAML, 1), `{ask: ""}`, `{ask: "", timeout: 1h}`, 1), nil)
	b.says(timed, "one")
	o.Chat.At = b.seqOf(timed, "you#1", protocol.EvStepStarted) - 1
	v = b.goesBack(timed, o)
	if was := b.view(timed); was.Status != protocol.Suspended {
		t.Errorf("what waits for a time is %s", was.Status)
	}
	b.drive(v.Next)
	b.checked(v.Next)
}

// A process that is killed in the middle is gone on with by another one, once.
func TestC05AKilledWayBackGoesOnOrBack(t *testing.T) {
	if dir := os.Getenv("WF_TEST_GOING_BACK"); dir != "" { // the process that is killed
		b := &bench{t: t, dir: dir}
		b.open()
		run := protocol.RunID(os.Getenv("WF_TEST_RUN"))
		o := b.before(run, 2)
		o.Each = func(int, int) { fmt.Fprint(os.Stderr, ".") }
		b.goesBack(run, o)
		return
	}
	b := newBench(t)
	run := talked(t, b, 1000, "one", "two")
	two := b.there()
	caught := 0
	for round := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestC05AKilledWayBackGoesOnOrBack$")
		cmd.Env = append(os.Environ(), "WF_TEST_GOING_BACK="+b.dir, "WF_TEST_RUN="+string(run))
		said, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(said, make([]byte, 1+rand.IntN(1001))); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		v, err := b.e.GoOnRestoring(t.Context(), b.dir, round == 1, nil)
		if err == nil {
			caught++
		} else if !errors.Is(err, protocol.ErrNotFound) || len(b.forks(run)) != 1 { // it had ended
			t.Fatal(err)
		}
		if err == nil && len(v.Conflicts) > 0 {
			t.Fatalf("%+v", v.Conflicts)
		}
		for _, fork := range b.forks(run) {
			if got := b.there(); len(got) != 1001 || got["d/7"] != "1\n" {
				t.Fatalf("%d files, d/7 %q", len(got), got["d/7"])
			}
			b.goesBack(fork, engine.Going{Chat: protocol.ChatMoved{What: protocol.ChatRedo, Next: run}, To: b.undo()})
			b.deletes(fork)
		}
		b.same(two)
	}
	t.Logf("%d of 3 were killed between", caught)
	if r, err := cas.Verify(t.Context(), inDir(b.e), cas.VerifyOptions{}); err != nil || len(r.Findings) > 0 {
		t.Errorf("%v %+v", err, r.Findings)
	}
}
