package chat_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// Bytes that begin no letter are shown as such, however many come, also where no line ends before them.
func TestBytesThatBeginNoLetterAreShown(t *testing.T) {
	for _, before := range []string{"", "a line\n"} {
		r := newRoom()
		talk(r)
		a := chat.New(t.Context(), r, nil)
		a.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
		settle(a, a.Init())
		a.Take(api.Update{Step: "wf#3", Data: protocol.Delta{Kind: "text", Text: before + strings.Repeat("\x80", 64<<10+1)}})
		a.View()
		a.Take(api.Update{Step: "wf#3", Data: protocol.Delta{Kind: "text", Text: "\nthe end"}})
		if now := a.Screen(); !strings.Contains(now, "the end") {
			t.Errorf("the screen is\n%s", now)
		}
	}
}

// F-39: no string of any event acts on the terminal on which the conversation is shown, its title
// included; the colours of the screen do.
func TestNoStringOfAnEventActsOnTheChat(t *testing.T) {
	colour := regexp.MustCompile(`\x1b\[[0-9;:]*m`)
	fields := []string{"title", "role", "content", "call", "name", "args", "question", "form", "by", "source", "choice", "text", "reason", "detail", "limit",
		"scope", "from", "to", "status", "model", "goal", "state", "final_response", "decision", "tool", "kind", "task", "id"}
	for _, act := range []string{"\x1b]52;c;cHduZWQ=\x07", "\x1b]0;owned\x1b\\", "\x1b[2J", "\x1bc", "\u009b2J", "\u202egnp", "\u200b\u2063", "\U000e0041", "\r\b\x00\x7f"} {
		for _, spec := range protocol.Events() {
			r := newRoom()
			r.info.Title = "title" + act
			talk(r)
			data := obj{}
			take := func(name string, value any) { // where the type has such a field
				if _, err := dataOf(spec.Type, obj{name: value}); err == nil {
					data[name] = value
				}
			}
			for _, name := range fields {
				take(name, "a"+act+"b")
			}
			take("error", obj{"code": act, "message": "m" + act, "phase": act})
			take("choices", []obj{{"label": "l" + act, "value": act}})
			r.happen("wf#2", spec.Type, data)
			r.happen("st"+act, spec.Type, data)
			args, err := json.Marshal(obj{"path": "p" + act, "old": "o" + act, "new": "n" + act})
			if err != nil {
				t.Fatal(err)
			}
			r.happen("wf#3", protocol.EvToolCall, obj{"call": "e", "name": "edit_file", "args": string(args)})
			r.happen("wf#3", protocol.EvWaiting, obj{"kind": "approval", "call": "e", "question": "a" + act + " calls:\n\n--- p" + act + "\n+++ p\n+n" + act, "shown": "d",
				"choices": []obj{{"label": "l" + act, "value": "allow"}}})
			a := chat.New(context.Background(), r, nil)
			a.Update(tea.WindowSizeMsg{Width: 120, Height: 60})
			settle(a, a.Init())
			for _, kind := range []string{"text", "thinking", "stdout"} {
				a.Take(api.Update{Step: "wf#3", Data: protocol.Delta{Kind: kind, Text: "x" + act}})
			}
			v := a.View()
			for what, text := range map[string]string{"screen": v.Content, "title": v.WindowTitle} {
				for _, c := range colour.ReplaceAllString(text, "") {
					if plain.Hidden(c) {
						t.Fatalf("%s of %s with %q: %U in %q", what, spec.Type, act, c, text)
					}
				}
			}
		}
	}
}
