package prompt

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/agentkit/task"
	"wf/protocol"
)

// turnOf is visit 3 of a coder, or its first task.
func turnOf(t failer, asTask bool) *protocol.Turn {
	h := protocol.History(pingPong(3))
	h.Tools = tools
	turn := &protocol.Turn{Run: "run", Step: protocol.StepID{Role: "coder", N: 3, Index: -1}, Visit: 3, Attempt: 1,
		Role: protocol.Role{Name: "coder", MaxTurns: 4}, Models: []string{"a/1", "a/2"}}
	if asTask {
		b, err := protocol.CanonicalJSON(task.Tools(nil))
		if err != nil {
			t.Fatal(err)
		}
		h.Tools = string(b)
	} else {
		h.Schema = `{"type":"object","required":["status"],"properties":{"status":{"enum":["done"]}}}`
	}
	turn.History = h
	return turn
}

type failer interface{ Fatal(...any) }

// drawn makes up what happens next in a visit: the events of one commit.
func drawn(t *rapid.T, w *Work, n int) []protocol.Data {
	if len(w.Pending) > 0 {
		if rapid.IntRange(0, 9).Draw(t, "stops here") == 0 {
			return []protocol.Data{protocol.AttemptFailed{Attempt: n, Keeps: rapid.Bool().Draw(t, "keeps")}}
		}
		return []protocol.Data{protocol.ToolResult{Call: w.Pending[0].ID, Content: protocol.NewText(fmt.Sprint("result ", n)), IsError: rapid.Bool().Draw(t, "wrong")}}
	}
	tokens := int64(rapid.IntRange(1, 60_000).Draw(t, "tokens"))
	switch rapid.SampledFrom([]string{"reply", "reply", "reply", "failed call", "fallback", "refused", "failed attempt"}).Draw(t, "what") {
	case "failed call":
		return []protocol.Data{protocol.Usage{Model: w.Model()}}
	case "fallback":
		return []protocol.Data{protocol.ModelFallback{From: w.Model(), To: rapid.SampledFrom(w.models).Draw(t, "to")}}
	case "refused":
		return []protocol.Data{w.Refusal(w.Model(), 0, tokens)}
	case "failed attempt":
		failed := []protocol.Data{protocol.AttemptFailed{Attempt: n, Keeps: rapid.Bool().Draw(t, "keeps")}}
		if rapid.Bool().Draw(t, "in the middle of a reply") {
			failed = append([]protocol.Data{protocol.TextSaid{Content: protocol.NewText("half a")}}, failed...)
		}
		return failed
	}
	var said []protocol.Data
	if rapid.Bool().Draw(t, "thinks") {
		said = append(said, protocol.Thinking{Content: protocol.NewText("hm"), Block: protocol.NewText("block")})
	}
	said = append(said, protocol.TextSaid{Content: protocol.NewText(rapid.SampledFrom([]string{"", "No fence.", "---\nstatus: done\n---\n"}).Draw(t, "text"))})
	for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
		name := rapid.SampledFrom([]string{"shell", protocol.ToolTaskComplete, protocol.ToolTaskWaitingOnUser}).Draw(t, "tool")
		said = append(said, protocol.ToolCall{Call: fmt.Sprintf("c%d_%d", n, i), Name: name, Args: protocol.NewText("{}")})
	}
	return append(said, protocol.Usage{Model: w.Model(), Input: &tokens, Stop: rapid.SampledFrom([]string{"", protocol.StopLength}).Draw(t, "stop")})
}

// A process that goes on with a visit sends what the one before it would have sent, wherever that
// one ended; and within an attempt requests only grow, compactions aside.
func TestWhatIsReplayedSendsTheSameRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		asTask := rapid.Bool().Draw(t, "a task")
		var journal []protocol.Entry
		live, err := NewWork(turnOf(t, asTask), []string{"a/1", "a/2"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		commit := func(data ...protocol.Data) {
			if err := live.Add(data...); err != nil {
				t.Fatal(err)
			}
			journal = append(journal, entries(t, data...)...)
		}
		if asTask {
			commit(protocol.TaskStarted{Goal: "Fix it."})
		}
		var before []byte // the request before, as long as the next one begins with it
		tried := false    // the request was sent already
		for n := range rapid.IntRange(1, 25).Draw(t, "events") {
			if f := live.Failure; f != nil && f.Keeps { // the turns are over: it is tried again, the reply before is gone
				commit(protocol.AttemptFailed{Attempt: n, Error: f.ErrorInfo, Keeps: true})
				tried = true
			}
			if live.Done != nil {
				break
			}
			sends := len(live.Pending) == 0
			if replies := len(repliesIn(live.tail)); sends && !tried && replies > 1 && rapid.IntRange(0, 3).Draw(t, "compact") == 0 {
				commit(protocol.Usage{Kind: protocol.UsageCompaction}, protocol.Compacted{Scope: protocol.ScopeVisit,
					Replies: rapid.IntRange(1, replies-1).Draw(t, "replies"), Summary: protocol.NewText("In short.")})
				before = nil
			}
			again, err := NewWork(turnOf(t, asTask), []string{"a/1", "a/2"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range journal {
				if _, err := again.Replay(&journal[i]); err != nil {
					t.Fatal(err)
				}
			}
			if sends {
				live.Conclude()
				again.Conclude()
				sent := Bytes(tools, live.Request())
				if !bytes.HasPrefix(sent, before) {
					t.Fatalf("request %d does not begin with the one before:\n%s\nbefore:\n%s", n, sent, before)
				}
				before = sent
			}
			if d := cmp.Diff(live.Request(), again.Request()); d != "" {
				t.Fatalf("another process goes on otherwise: %s", d)
			}
			data := drawn(t, live, n)
			commit(data...)
			_, called := data[len(data)-1].(protocol.Usage)
			tried = sends && !(called && (len(data) > 1 || live.over != nil))
			if f, ok := data[len(data)-1].(protocol.AttemptFailed); ok {
				if tried = false; !f.Keeps {
					before = nil
				}
			}
		}
	})
}

// Once a higher limit holds, a visit whose turns were over goes on: the reply whose calls never ran is gone, and what the model
// is sent next begins with what it was sent before.
func TestAVisitGoesOnWithMoreTurns(t *testing.T) {
	turn := turnOf(t, false)
	w, err := NewWork(turn, turn.Models, nil)
	if err != nil {
		t.Fatal(err)
	}
	var journal []protocol.Entry
	commit := func(data ...protocol.Data) {
		if err := w.Add(data...); err != nil {
			t.Fatal(err)
		}
		journal = append(journal, entries(t, data...)...)
	}
	var sent []protocol.Message
	for n := 0; w.Done == nil; n++ {
		w.Conclude()
		sent = slices.Clone(w.Request())
		call := fmt.Sprint("c", n)
		commit(protocol.ToolCall{Call: call, Name: "shell", Args: protocol.NewText("{}")}, protocol.Usage{Model: "a/1"})
		if w.Done == nil {
			commit(protocol.ToolResult{Call: call, Content: protocol.NewText("ok")})
		}
	}
	commit(protocol.AttemptFailed{Attempt: 1, Error: w.Failure.ErrorInfo, Keeps: true}, protocol.StepCompleted{Status: protocol.StepFailed})
	for _, most := range []int{4, 9} { // as it was, and more
		turn := turnOf(t, false)
		turn.Role.MaxTurns = most
		again, err := NewWork(turn, turn.Models, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range journal {
			if _, err := again.Replay(&journal[i]); err != nil {
				t.Fatal(err)
			}
		}
		again.Conclude()
		got := again.Request()
		if most > 4 { // it was not told that its turns are over
			sent = sent[:len(sent)-1]
		}
		if d := cmp.Diff(sent, got); d != "" || again.Done != nil || len(again.Pending) > 0 {
			t.Errorf("with %d turns it goes on with %v, %v: %s", most, again.Done, again.Pending, d)
		}
	}
}

// entries are events as a journal holds them.
func entries(t failer, data ...protocol.Data) []protocol.Entry {
	step := "coder#3"
	var out []protocol.Entry
	for _, d := range data {
		b, err := cbor.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, protocol.Entry{Event: protocol.Event{Seq: 1, Type: d.EventType(), Step: &step, Data: b}})
	}
	return out
}

// What is cut gives way to its summary, and nothing else changes.
func TestACutReplacesItsPartAlone(t *testing.T) {
	turn := turnOf(t, false)
	turn.LastUsage = DefaultWatermark + 1
	w, err := NewWork(turn, turn.Models, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := w.Request()
	cut, err := w.Due("")
	if err != nil || cut == nil {
		t.Fatalf("nothing is due: %v", err)
	}
	if d := cmp.Diff(whole[:len(whole)-1], cut.Ask[:len(cut.Ask)-1]); d != "" {
		t.Errorf("the summary is not asked for on what was sent: %s", d)
	}
	event, err := cut.Event(Summary{Text: cut.Text("Two tries failed."), Model: "a/1"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(whole, w.Request()); d != "" {
		t.Errorf("it is replaced before it is journaled: %s", d)
	}
	if err := w.Add(event); err != nil {
		t.Fatal(err)
	}
	if got, want := Digest(turn.History.Tools, w.Prompt).String(), event.(protocol.CompactionDraft).Compacted.Digest; got != want {
		t.Errorf("%s is journaled of %s", want, got)
	}
	if u := w.Prompt[1].Content; !strings.HasPrefix(u, pastHeading+"\n\nTwo tries failed.\n\nThe tests fail, round 3.") {
		t.Errorf("it goes on from %q", u)
	}
	if again, err := w.Due(""); again != nil || err != nil {
		t.Errorf("it is due again: %v, %v", again, err)
	}
}

// A model that summarises in the same words twice has made two compactions.
func TestTwoCompactionsMayReadAlike(t *testing.T) {
	turn := turnOf(t, false)
	turn.History.Visit.Resumes = link("coder#2")
	w, err := NewWork(turn, turn.Models, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, covers := range []string{"coder#1", "coder#2"} {
		if err := w.Add(protocol.CompactionDraft{Covers: link(covers), Summary: "Nothing worked."}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(w.Prompt); got != 2 {
		t.Errorf("%d messages: %v", got, w.Prompt)
	}
}

func TestAnEventThatCannotBeReadIsNamed(t *testing.T) {
	turn := turnOf(t, false)
	turn.Transcript = entries(t, protocol.ToolResult{Call: "c1", Content: protocol.NewText("x")})
	turn.Transcript[0].Data = cbor.RawMessage{0xff}
	if _, err := Rebuild(*turn); err == nil || !strings.Contains(err.Error(), "transcript of coder#3: event 1 (tool_result): ") {
		t.Errorf("got %v", err)
	}
	turn.Transcript = entries(t, protocol.Compacted{Scope: protocol.ScopeVisit, Replies: -1})
	if _, err := Rebuild(*turn); protocol.CodeOf(err) != protocol.ErrCorrupt.Code {
		t.Errorf("got %v", err)
	}
}

// FuzzRebuild reads events as an archive from elsewhere may hold them: nothing in them panics, and
// the same ones give the same request.
func FuzzRebuild(f *testing.F) {
	n := int64(9)
	add := func(asTask bool, data ...protocol.Data) {
		var types, raw []byte
		for _, e := range entries(f, data...) {
			i := slices.IndexFunc(protocol.Events(), func(s protocol.EventSpec) bool { return s.Type == e.Type })
			types = append(types, byte(i))
			raw = append(append(raw, byte(len(e.Data))), e.Data...)
		}
		f.Add(asTask, types, raw)
	}
	call := protocol.ToolCall{Call: "c", Name: protocol.ToolTaskComplete, Args: protocol.NewText("{}")}
	add(false, protocol.TextSaid{Content: protocol.NewText("no")}, protocol.Usage{Input: &n}, protocol.Correction{Number: 1})
	add(false, call, protocol.Usage{Input: &n}, protocol.ToolResult{Call: "c"}, protocol.Compacted{Scope: protocol.ScopeVisit, Replies: 1})
	add(true, protocol.TaskStarted{Goal: "g"}, call, protocol.Usage{Input: &n}, protocol.ToolResult{Call: "c"}, protocol.TaskDone{FinalResponse: protocol.NewText("x")})
	add(true, protocol.TextSaid{}, protocol.Usage{Stop: protocol.StopOverflow, Window: 3, Held: 4}, protocol.AttemptFailed{}, protocol.SuspendedBy{})
	f.Fuzz(func(t *testing.T, asTask bool, types, raw []byte) {
		turn := turnOf(t, asTask)
		step := "coder#3"
		for _, i := range types {
			e := protocol.Event{Type: protocol.Events()[int(i)%len(protocol.Events())].Type, Step: &step}
			if len(raw) > 0 {
				size := min(int(raw[0]), len(raw)-1)
				e.Data, raw = raw[1:1+size], raw[1+size:]
			}
			turn.Transcript = append(turn.Transcript, protocol.Entry{Event: e})
		}
		one, err := Rebuild(*turn)
		two, again := Rebuild(*turn)
		if (err == nil) != (again == nil) || !bytes.Equal(Bytes("", one), Bytes("", two)) {
			t.Errorf("%v, %v:\n%s\n%s", err, again, Bytes("", one), Bytes("", two))
		}
	})
}
