package render

import (
	"fmt"
	"io"
	"strings"

	"wf/api"
	"wf/protocol"
)

// A transcript shows a run as a stream: what models and commands say word by word, thinking
// dimmed, tools with the beginning of what they answered, and a line for everything else.
//
//	● coder#1  started: fix the two failing tests
//	The split case must keep the empty tail.
//	→ edit_file {"path":"split.go"}
//	  ok
//	✓ coder#1  completed ok in 2.1s  k3mau2xq
type transcript struct {
	Backdrop
	w *Screen

	step  string                      // who is speaking
	kind  string                      // and how
	inRow bool                        // the line is not over
	heard map[string]*strings.Builder // text and thinking of each step since its last event of that kind
}

// resultLines is how much of what a tool answered is shown.
const resultLines = 10

func (s *transcript) Notice(n api.Update) {
	if d, ok := n.Data.(protocol.Delta); ok {
		if s.Fold.folds(n.Step) {
			return
		}
		s.said(n.Step, d.Kind).WriteString(d.Text)
		s.speak(n.Step, d.Kind, d.Text)
		return
	}
	if n.Entry == nil {
		return
	}
	x := s.fold(n.Run, n.Step, n.Entry.TS, n.Data)
	s.about(x.fan, x.before)
	if x.own {
		s.event(n)
	}
	s.about(x.fan, x.behind)
}

// about are lines about a fan-out that is folded.
func (s *transcript) about(x *fan, texts []string) {
	for _, text := range texts {
		sign := s.w.Cyan("●")
		switch {
		case text == x.String():
			sign = s.w.sign(x.Worst())
		case strings.HasPrefix(text, "…"):
			sign = s.w.Yellow("!")
		}
		s.line(x.name, sign, text)
	}
}

// event shows one that has lines of its own.
func (s *transcript) event(n api.Update) {
	switch d := n.Data.(type) {
	case protocol.TextSaid:
		s.rest(n.Step, "text", d.Content.S)
	case protocol.Thinking:
		s.rest(n.Step, "thinking", d.Content.S)
	case protocol.ToolCall:
		if s.tell(d) != "" {
			s.line(n.Step, s.w.Cyan("→"), d.Name+" "+OneLine(d.Args.S, 160))
		}
	case protocol.ToolResult:
		if s.tell(d) != "" {
			s.result(n.Step, d)
		}
		if d.Appeared != nil {
			s.line(n.Step, s.w.told(d.Appeared), d.Appeared.String())
		}
	case protocol.Usage, protocol.PromptSent:
		// the stream tells as much
	case protocol.StepCompleted:
		sign := s.w.Green("✓")
		if d.Status == protocol.StepFailed {
			sign = s.w.Red("✗")
		}
		if isRed(s.itemEnded(n.Step, d, false)) {
			sign = s.w.sign(redItem)
		}
		s.line(n.Step, sign, s.tell(d))
	default:
		sign := s.w.Cyan("●")
		switch d.(type) {
		case protocol.AttemptFailed: // the next attempt says it anew
			s.said(n.Step, "text").Reset()
			s.said(n.Step, "thinking").Reset()
			sign = s.w.Yellow("!")
		case protocol.SuspendedBy, protocol.LimitReached, protocol.CancelledBy:
			sign = s.w.Yellow("!")
		}
		if text := s.tell(n.Data); text != "" {
			s.line(n.Step, sign, text)
		}
	}
}

// said is what was heard of a step since the last event that holds the whole.
func (s *transcript) said(step, kind string) *strings.Builder {
	key := step + "\x00" + kind
	b := s.heard[key]
	if b == nil {
		if s.heard == nil {
			s.heard = map[string]*strings.Builder{}
		}
		b = &strings.Builder{}
		s.heard[key] = b
	}
	return b
}

// speak goes on with what a step says; another speaker begins a line of its own.
func (s *transcript) speak(step, kind, text string) {
	if step != s.step || kind != s.kind {
		s.endRow()
		if step != s.step {
			fmt.Fprintf(s.w, "%s\n", s.w.Bold(step))
		}
		s.step, s.kind = step, kind
	}
	shown := Visible(text)
	s.inRow = !strings.HasSuffix(shown, "\n")
	if kind == "thinking" {
		shown = s.dimLines(shown)
	}
	io.WriteString(s.w, shown)
}

// dimLines dims a text line by line: a colour that runs over the end of a line also colours
// what a terminal scrolls in.
func (s *transcript) dimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = s.w.Dim(l)
		}
	}
	return strings.Join(lines, "\n")
}

// rest shows what of a whole text was not heard: its end, or all of it where something is
// missing in between.
func (s *transcript) rest(step, kind, whole string) {
	heard := s.said(step, kind)
	if tail, ok := strings.CutPrefix(whole, heard.String()); ok {
		whole = tail
	} else if strings.TrimSpace(heard.String()) == strings.TrimSpace(whole) {
		whole = ""
	} else {
		s.endRow()
	}
	heard.Reset()
	if whole != "" {
		s.speak(step, kind, whole)
	}
	s.endRow()
}

// result shows what a tool answered, unless it was heard while the tool ran.
func (s *transcript) result(step string, d protocol.ToolResult) {
	s.endRow()
	out, errs := s.said(step, "stdout"), s.said(step, "stderr")
	heard := strings.TrimSpace(out.String()) + strings.TrimSpace(errs.String())
	out.Reset()
	errs.Reset()
	lines := strings.Split(strings.TrimRight(Visible(d.Content.S), "\n"), "\n")
	if heard != "" && strings.HasSuffix(strings.Join(lines, "\n"), "\n"+Visible(heard)) {
		return
	}
	more := len(lines) - resultLines
	for _, l := range lines[:min(len(lines), resultLines)] {
		if d.IsError {
			l = s.w.Red(l)
		} else {
			l = s.w.Dim(l)
		}
		fmt.Fprintf(s.w, "  %s\n", l)
	}
	if more > 0 {
		fmt.Fprintf(s.w, "  … %s\n", protocol.Plural(more, "more line"))
	}
}

func (s *transcript) line(step, sign, text string) {
	s.endRow()
	s.step, s.kind = step, ""
	if step != "" {
		step += "  "
	}
	fmt.Fprintf(s.w, "%s\n", s.w.Wrap(sign+" "+step+text, "  "))
}

func (s *transcript) endRow() {
	if s.inRow {
		io.WriteString(s.w, "\n")
		s.inRow = false
	}
}

func (s *transcript) Close() {
	s.endRow()
	for _, x := range s.Fold.left() {
		s.about(x, []string{x.String()})
	}
}
