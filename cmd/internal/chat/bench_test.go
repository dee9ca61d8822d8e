package chat_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/protocol"
)

// hall is a conversation of many turns.
func hall(turns int) *room {
	r := newRoom()
	r.happen("", protocol.EvRunStarted, obj{"title": "long"})
	for i := range turns {
		you, wf := fmt.Sprintf("you#%d", i+1), fmt.Sprintf("wf#%d", i+1)
		r.happen(you, protocol.EvAnswered, obj{"text": "and then?"})
		r.happen(wf, protocol.EvPrompt, obj{"model": "m"})
		r.happen(wf, protocol.EvText, obj{"content": "Then it went on, as such stories do, for quite a while longer than one line can hold it."})
	}
	return r
}

// settle runs a command that ends by itself, and takes what it brought.
func settle(a *chat.App, cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	if msg := cmd(); msg != nil {
		a.Update(msg)
	}
}

// From nothing to the first frame of a session of 10,000 turns: its last page is read, folded
// and drawn.
func BenchmarkFirstFrame(b *testing.B) {
	r := hall(10_000)
	b.ReportAllocs()
	for b.Loop() {
		a := chat.New(context.Background(), r, nil)
		a.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
		settle(a, a.Init())
		if v := a.View(); len(v.Content) < 500 {
			b.Fatal("nothing on it")
		}
	}
}

// A key press is taken and the frame drawn, while tokens stream into the newest answer.
func BenchmarkKeyToFrameWhileStreaming(b *testing.B) {
	r := hall(200)
	a := chat.New(context.Background(), r, nil)
	a.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
	settle(a, a.Init())
	live := api.Update{Step: "wf#201", Data: protocol.Delta{Kind: "text", Text: "token "}}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n%500 == 0 { // an answer of 500 tokens, then the next
			a.Take(event(protocol.Seq(1000+n), "wf#201", protocol.TextSaid{Content: protocol.NewText("whole")}))
		}
		a.Take(live)
		a.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
		if n%40 == 0 {
			a.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
		}
		_ = a.View()
	}
}

// A frame while a long answer goes on, after a key that scrolls it, and after the screen has changed: what is not on the screen is
// not drawn anew.
func BenchmarkFrameOfALongAnswer(b *testing.B) {
	for _, size := range []int{100 << 10, 5 << 20} {
		a := chat.New(context.Background(), hall(10), nil)
		a.Resize(120, 40)
		settle(a, a.Init())
		say := func(text string) {
			a.Take(api.Update{Step: "wf#201", Data: protocol.Delta{Kind: "text", Text: text}})
		}
		const text = "Words and **bold** ones go on, with `code` and é in between.\n\n- an item\n"
		say(strings.Repeat(text, size/len(text)))
		_ = a.View()
		width := 120
		for name, do := range map[string]func(){"grows": func() { say("token ") }, "scrolls": func() { a.Press("pgup") }, "resized": func() {
			width = 160 - width
			a.Resize(width, 40)
		}} {
			b.Run(fmt.Sprintf("%dKB/%s", size>>10, name), func(b *testing.B) {
				a.Press("end")
				b.ReportAllocs()
				for b.Loop() {
					do()
					_ = a.View()
				}
			})
		}
	}
}
