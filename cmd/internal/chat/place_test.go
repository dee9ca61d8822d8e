package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/cas"
	"wf/cmd/internal/chat"
	"wf/protocol"
)

// desk is a place with runs that the test plays. What it is asked to do is written down.
type desk struct {
	api.Service
	did     []string
	updates []api.Update
	follows []api.Following
	scope   string // of the memory of the agent
	turns   []api.Turn
	back    api.WentBack
	failed  error          // of going back
	moved   protocol.RunID // where the conversation went meanwhile
}

func (d *desk) note(format string, args ...any) {
	d.did = append(d.did, fmt.Sprintf(format, args...))
}

func (d *desk) Run(_ context.Context, run protocol.RunID, _ api.Window) (*api.Run, error) {
	first, second := "c1", "c2"
	return &api.Run{ID: run, Seq: 7, Info: api.RunInfo{Title: "talk of " + string(run), Workspace: "/w"},
		Steps: []*api.Step{{ID: "wf#1", CID: &first}, {ID: "wf#2", CID: &second}, {ID: "you#3"}}}, nil
}

func (d *desk) Fork(_ context.Context, run protocol.RunID, f api.Fork) (api.Accepted, error) {
	d.note("fork %s %s %t %v", run, f.Step, f.After, f.Models)
	return api.Accepted{ID: "FORK"}, nil
}

func (d *desk) Resume(_ context.Context, run protocol.RunID, r api.Resume) error {
	b, err := json.Marshal(r.Limits)
	d.note("resume %s %s", run, b)
	return err
}

func (d *desk) Suspend(_ context.Context, run protocol.RunID) error {
	d.note("suspend %s", run)
	return nil
}

func (d *desk) Send(_ context.Context, run protocol.RunID, m api.Message) error {
	d.note("send %s %s: %s", run, m.Source, m.Text)
	return nil
}

func (d *desk) Answer(_ context.Context, run protocol.RunID, a api.Answer) (string, error) {
	d.note("answer %s %s %q %q %s %s by %s", run, a.Step, a.Choice, a.Text, a.Fields, a.Shown, a.Source)
	return a.Step, nil
}

func (d *desk) Agent(context.Context, protocol.RunID) (api.Agent, error) {
	return api.Agent{Model: "local/tiny", Window: 32000, Memory: d.scope}, nil
}

func (d *desk) Again(_ context.Context, run protocol.RunID) (protocol.RunID, error) {
	d.note("begin %s anew", run)
	return "NEW", nil
}

func (d *desk) Turns(context.Context, protocol.RunID) ([]api.Turn, error) { return d.turns, nil }

func (d *desk) Back(_ context.Context, run protocol.RunID, b api.Back) (api.WentBack, error) {
	d.note("back %s %q %t %t", run, b.To, b.Forth, b.Force)
	return d.back, d.failed
}

func (d *desk) SettleChat(_ context.Context, run protocol.RunID, mark api.CID, _ func(done, of int)) (api.Settled, error) {
	if mark != "" && d.moved != "" {
		run = d.moved
	}
	return api.Settled{Run: run, Mark: "m"}, nil
}

func (d *desk) Memories(_ context.Context, q api.MemoryQuery) (*api.Memories, error) {
	return &api.Memories{Scope: q.Scope, Items: []api.MemoryItem{{ID: 2, Content: "said here", Pinned: true, Tags: []string{"ops"}}}}, nil
}

func (d *desk) Follow(_ context.Context, _ protocol.RunID, w api.Following, f func(api.Update) error) error {
	d.follows = append(d.follows, w)
	for _, u := range d.updates {
		if err := f(u); err != nil {
			return err
		}
	}
	return nil
}

func enter(t *testing.T, d *desk, near chat.Near) chat.Session {
	t.Helper()
	s, err := chat.Open(t.Context(), chat.Place{Service: d, Follower: d, Near: near, Me: "ada"}, "RUN")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stored is an event as a Follower shows it.
func stored(t *testing.T, seq protocol.Seq, step string, d protocol.Data) api.Update {
	t.Helper()
	raw, err := cas.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	return api.Update{Entry: &protocol.Entry{Event: protocol.Event{Seq: seq, Type: d.EventType(), Step: &step, Data: raw.Data}}, Data: d, Step: step}
}

// What a follower tells comes to the screen as it is.
func TestWhatHappensComesToTheScreen(t *testing.T) {
	yes, back := true, protocol.Seq(3)
	d := &desk{updates: []api.Update{
		stored(t, 8, "wf#1", protocol.TextSaid{Content: protocol.NewText("hello")}),
		{Whole: true},
		{Driven: &yes},
		{Step: "wf#1", Data: protocol.Delta{Kind: "text", Text: "hal"}, After: 8, N: 2},
		{Remark: "not connected: no route; it is tried again", Away: "no route"},
		{Remark: "connected again"},
		{Remark: "the head was put on another history", Reset: &back},
	}}
	s := enter(t, d, nil)
	var got []api.Update
	err := s.Follow(t.Context(), 7, func(u api.Update) { got = append(got, u) })
	if !reflect.DeepEqual(got, d.updates) || err != nil {
		t.Errorf("%v\n%v", err, got)
	}
	if w := d.follows[0]; w.From != 7 || w.Until != api.Never {
		t.Errorf("it follows %+v", w)
	}
}

// A page ends before an event.
func TestAPageIsAWindowOfEvents(t *testing.T) {
	d := &desk{updates: []api.Update{stored(t, 6, "wf#1", protocol.TextSaid{Content: protocol.NewText("six")}), {Whole: true}}}
	s := enter(t, d, nil)
	events, err := s.Page(t.Context(), 7, 4)
	if err != nil || len(events) != 1 || events[0].Entry.Seq != 6 {
		t.Errorf("%v, %v", events, err)
	}
	if w := d.follows[0]; w != (api.Following{From: 2, To: 6}) {
		t.Errorf("it asks for %+v", w)
	}
	if events, err := s.Page(t.Context(), 1, 4); err != nil || events != nil || len(d.follows) != 1 {
		t.Errorf("before the first event there are %v, %v", events, err)
	}
	if tip, err := s.Tip(t.Context()); tip != 7 || err != nil {
		t.Errorf("the newest event is %d, %v", tip, err)
	}
}

func TestWhatAPersonDoesIsAskedOfTheService(t *testing.T) {
	d := &desk{scope: "role/w/wf"}
	s := enter(t, d, d)
	ctx := t.Context()
	do := func(a chat.Action, arg string) chat.Outcome {
		t.Helper()
		out, err := s.Command(ctx, chat.Command{Action: a, Arg: arg})
		if err != nil {
			t.Fatalf("/%s %s: %v", a, arg, err)
		}
		return out
	}
	err := errors.Join(s.Answer(ctx, api.Answer{Step: "you#3", Text: "hi"}), s.Say(ctx, "later"),
		s.Answer(ctx, api.Answer{Step: "g#1", Choice: "no", Text: "why", Shown: "d1"}))
	if err != nil {
		t.Fatal(err)
	}
	do(chat.Interrupt, "")
	do(chat.Resume, "cost_usd=50")
	if out := do(chat.Memories, ""); !out.Dialog || !strings.Contains(out.Text, "2 pinned [ops]\n  said here") {
		t.Errorf("remembered is shown as %+v", out)
	}
	if out := do(chat.Reset, ""); !out.Moved || s.Info().Run != "NEW" {
		t.Errorf("/reset: %+v, run %s", out, s.Info().Run)
	}
	if out := do(chat.Model, "big/one"); !out.Moved || s.Info().Run != "FORK" || s.Info().Title != "talk of FORK" {
		t.Errorf("/model: %+v, %+v", out, s.Info())
	}
	want := []string{`answer RUN you#3 "" "hi"   by chat`, "send RUN ada: later", `answer RUN g#1 "no" "why"  d1 by chat`,
		"suspend RUN", `resume RUN {"cost_usd":"50"}`, "begin RUN anew", "fork NEW wf#2 true map[:[big/one]]"}
	if !slices.Equal(d.did, want) {
		t.Errorf("it asks\n%s", cmp.Diff(want, d.did))
	}
	if _, err := s.Command(ctx, chat.Command{Action: chat.Resume, Arg: "fifty"}); !errors.Is(err, protocol.ErrUsage) {
		t.Errorf("a limit without a name: %v", err)
	}
}

// What only the process that has the store can do is refused elsewhere, with what helps.
func TestFarAwayTheMemoryIsNotKnown(t *testing.T) {
	d := &desk{}
	s := enter(t, d, nil)
	for _, a := range []chat.Action{chat.Memories, chat.Dump, chat.Reset} {
		if _, err := s.Command(t.Context(), chat.Command{Action: a}); !errors.Is(err, protocol.ErrUsage) || protocol.HintOf(err) == "" {
			t.Errorf("/%s: %v", a, err)
		}
	}
	if len(d.did) > 0 {
		t.Errorf("it did %q", d.did)
	}
}
