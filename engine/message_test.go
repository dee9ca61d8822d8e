package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

const inboxYAML = `
wf: 1
name: inbox
roles:
  gate: {ask: "Go on?", choices: [yes, no]}
  agent: {prompt: "You read."}
edges:
  - {from: START, to: gate}
  - {from: gate, to: agent}
  - {from: agent, to: gate, limit: 1, on_limit: END}
`

// reader is an agent that concludes with what was injected.
func reader(b *bench) {
	b.e.Performers[protocol.ActPrompt] = performerFunc(func(_ context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
		said := turn.History.Visit.Inject
		return protocol.Conclusion{Text: &said}, nil
	})
}

func TestB10MessagesWaitForTheNextAgentWithTheirSource(t *testing.T) {
	b := newBench(t)
	reader(b)
	id, v := b.run(inboxYAML, nil)
	if v.Status != protocol.Waiting {
		t.Fatal(v.Status)
	}
	ctx := context.Background()
	long := strings.Repeat("x", 3000)
	for _, m := range [][2]string{{"bluesky", "first"}, {"build", long}} {
		if err := b.e.Message(ctx, id, m[0], m[1]); err != nil {
			t.Fatal(err)
		}
	}
	if v := b.view(id); v.Status != protocol.Waiting {
		t.Fatalf("a message answered a choice: %s", v.Status)
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Choice: "yes"}); err != nil {
		t.Fatal(err)
	}
	v = b.drive(id)
	if got, want := v.Steps[1].Text, "[message from bluesky]\nfirst\n\n[message from build]\n"+long; got != want {
		t.Errorf("agent#1 read %.200q", got)
	}
	if err := b.e.Message(ctx, id, "bluesky", "second"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.e.Answer(ctx, id, engine.Reply{Choice: "yes"}); err != nil {
		t.Fatal(err)
	}
	if v = b.drive(id); v.Steps[3].Text != "[message from bluesky]\nsecond" {
		t.Errorf("agent#2 read %q: each message is read once", v.Steps[3].Text)
	}
	b.sound(id)
	if err := b.e.Message(ctx, id, "bluesky", "late"); v.Status != protocol.Done || !errors.Is(err, protocol.ErrFinal) {
		t.Errorf("run is %s, a late message: %v", v.Status, err)
	}
}

func TestB10AMessageAnswersAFreeQuestion(t *testing.T) {
	b := newBench(t)
	id, _ := b.run("wf: 1\nname: q\nroles:\n  who: {ask: \"Who are you?\"}\noutputs: {said: \"${{ steps.who.output.text }}\"}\n", nil)
	if err := b.e.Message(context.Background(), id, "irc", "the \xffbot"); err != nil {
		t.Fatal(err)
	}
	if v := b.drive(id); string(v.Outputs) != `{"said":"[message from irc]\nthe �bot"}` {
		t.Errorf("outputs %s", v.Outputs)
	}
}

func TestAMessageWithoutAGoodSourceOrTextIsRefused(t *testing.T) {
	b := newBench(t)
	id, _ := b.run(inboxYAML, nil)
	for name, m := range map[string][2]string{"no source": {"", "x"}, "a source of two lines": {"a\nb", "x"}, "a source that ends the mark": {"a]", "x"},
		"no text": {"irc", " \n"}, "a long text": {"irc", strings.Repeat("x", 64<<10+1)}} {
		if err := b.e.Message(context.Background(), id, m[0], m[1]); !errors.Is(err, protocol.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.e.Message(context.Background(), "NOSUCHRUN1", "irc", "x"); !errors.Is(err, protocol.ErrUnknownRun) {
		t.Errorf("an unknown run: %v", err)
	}
}

const offerYAML = `
wf: 1
name: offer
inputs: {offer: {type: array}}
roles:
  first: {set: {choices: "${{ inputs.offer }}"}}
  next: {ask: "What next?", choices: "${{ output.choices }}"}
  agent: {set: {did: "${{ output.choice }}"}}
edges:
  - {from: START, to: first}
  - {from: first, to: next}
  - {from: next, to: agent}
  - {from: agent, to: END}
outputs: {did: "${{ steps.agent.output.did }}"}
`

func TestK12ChoicesOfAFinishedStepStartTheNextVisit(t *testing.T) {
	b := newBench(t)
	id, v := b.run(offerYAML, map[string]any{"offer": []any{"Add to VIBE.md",
		map[string]any{"label": "Design replay", "value": "Design the detailed replay protocol", "primary": true}}})
	if len(v.Waiting) != 1 || v.Waiting[0].Kind != protocol.WaitChoice || len(v.Waiting[0].Choices) != 2 || !v.Waiting[0].Choices[1].Primary {
		t.Fatalf("waiting for %+v", v.Waiting)
	}
	if _, err := b.e.Answer(context.Background(), id, engine.Reply{Choice: "another"}); !errors.Is(err, protocol.ErrAnswer) {
		t.Errorf("a choice that nobody offered: %v", err)
	}
	if _, err := b.e.Answer(context.Background(), id, engine.Reply{Choice: "Design replay"}); err != nil {
		t.Fatal(err)
	}
	if v = b.drive(id); string(v.Outputs) != `{"did":"Design the detailed replay protocol"}` {
		t.Errorf("outputs %s", v.Outputs)
	}
}

func TestOffersThatNobodyCouldReadFailTheVisit(t *testing.T) {
	for name, offer := range map[string][]any{
		"two of the same value": {"a", "a"},
		"a number":              {1},
		"neither label":         {map[string]any{"primary": true}},
	} {
		b := newBench(t)
		_, v := b.run(offerYAML, map[string]any{"offer": offer})
		if s := v.Steps[len(v.Steps)-1]; v.Status != protocol.Suspended || s.Error == nil || !strings.Contains(v.Reason+s.Error.Message, "choice") {
			t.Errorf("%s: %s, %s", name, v.Status, v.Reason)
		}
	}
	b := newBench(t)
	id, v := b.run(offerYAML, map[string]any{"offer": []any{}})
	if len(v.Waiting) != 1 || v.Waiting[0].Kind != protocol.WaitQuestion {
		t.Fatalf("without an offer it is a free question: %+v", v.Waiting)
	}
	if _, err := b.e.Answer(context.Background(), id, engine.Reply{Text: "my own"}); err != nil {
		t.Fatal(err)
	}
	if v = b.drive(id); v.Status != protocol.Done {
		t.Error(v.Status)
	}
}

func TestK12TheTimesOfARunAddUp(t *testing.T) {
	b := newBench(t)
	b.e.Performers[protocol.ActPrompt] = performerFunc(func(ctx context.Context, _ protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
		tokens := int64(5)
		for _, d := range []protocol.Data{
			protocol.Usage{Model: "m", Input: &tokens, Output: &tokens, TTFE: 1},
			protocol.ToolCall{Call: "1", Name: "shell", Args: protocol.NewText("{}")},
			protocol.ToolCall{Call: "2", Name: "shell", Args: protocol.NewText("{}")},
			protocol.ToolResult{Call: "2", Content: protocol.NewText("ok")},
			protocol.ToolResult{Call: "1", Content: protocol.NewText("ok")},
		} {
			if err := emit(ctx, d); err != nil {
				return protocol.Conclusion{}, err
			}
		}
		said := "done"
		return protocol.Conclusion{Text: &said}, nil
	})
	_, v := b.run("wf: 1\nname: t\nroles:\n  a: {prompt: x}\n  b: {run: \"true\"}\n", nil)
	got := v.Timing
	if got.ToolCalls != 3 || got.TotalMS != got.TTFEMS+got.ThinkingMS+got.ToolsMS || got.TTFEMS < 0 || got.ThinkingMS < 0 || got.ToolsMS < 0 {
		t.Errorf("%+v", got)
	}
	if got.TotalMS > 0 && got.TTFEPct+got.ThinkingPct+got.ToolsPct != 100 {
		t.Errorf("percentages of %+v", got)
	}
}

// A run that closes takes a message as long as one of its always roles may read it.
func TestAMessageToARunThatClosesIsReadOrRefused(t *testing.T) {
	const yaml = "wf: 1\nname: closes\ndefaults: {model: script/x, timeout: 1m}\nroles:\n  work: {set: {n: 1}}\n  tidy: {set: {n: 2}}\n  tell: {prompt: You tell.}\n  last: {set: {n: 3}}\nalways: [tidy, tell, last]\n"
	b := newBench(t)
	b.e.Performers[protocol.ActPrompt] = performerFunc(func(_ context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
		return protocol.Conclusion{Text: &turn.History.Visit.Inject}, nil
	})
	said := map[string]error{}
	b.e.Performers[protocol.ActSet] = performerFunc(func(ctx context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
		said[turn.Role.Name] = b.e.Message(ctx, turn.Run, "mail", "from "+turn.Role.Name)
		return protocol.Conclusion{Data: turn.Values}, nil
	})
	id, v := b.run(yaml, nil)
	if v.Status != protocol.Done || said["work"] != nil || said["tidy"] != nil || !errors.Is(said["last"], protocol.ErrFinal) || !strings.Contains(said["last"].Error(), "closes") {
		t.Fatalf("%s: %v", v.Status, said)
	}
	for _, s := range v.Steps {
		if s.Role == "tell" && (!strings.Contains(s.Text, "from work") || !strings.Contains(s.Text, "from tidy")) {
			t.Errorf("the agent read %q", s.Text)
		}
	}
	b.checked(id)
}
