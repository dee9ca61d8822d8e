package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"wf/cmd/internal/markdown"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// The looks of what is shown. Basic colours follow the theme of the terminal.
var (
	styleYou      = lipgloss.NewStyle().Foreground(lipgloss.Color("6")).Bold(true)
	styleReply    = lipgloss.NewStyle().Foreground(lipgloss.Color("2")).Bold(true)
	styleTool     = lipgloss.NewStyle().Foreground(lipgloss.Color("3"))
	styleFailed   = lipgloss.NewStyle().Foreground(lipgloss.Color("1"))
	styleDim      = lipgloss.NewStyle().Faint(true)
	styleQuestion = lipgloss.NewStyle().Bold(true)
	styleWaits    = lipgloss.NewStyle().Foreground(lipgloss.Color("2"))
	styleChosen   = lipgloss.NewStyle().Reverse(true)
)

// lines are the lines of an item at a width, with a blank one before what begins a turn. whole says that nothing
// is folded.
func (it *Item) lines(width int, whole bool) []string {
	width = max(width, 1)
	switch it.Kind {
	case You:
		who := "you "
		if it.Source != "" {
			who = it.Source + " "
		}
		return append([]string{""}, fold(hang(styleYou.Render(who), plain.Width(who), it.Text, width, plainStyle), foldedYou, whole)...)
	case Tool:
		return it.toolLines(width, whole)
	case Question:
		return it.questionLines(width, whole)
	default:
		style := styleDim
		if it.Failed {
			style = styleFailed
		}
		return hang(style.Render("· "), 2, it.Text, width, style.Render)
	}
}

func plainStyle(s ...string) string { return strings.Join(s, "") }

// replyHead is what comes before the text of a reply, and its style: the head of its first line, and the
// cells by which all are indented.
func (it *Item) replyHead(width int) (out []string, head string, indent int) {
	out = []string{""}
	who := roleOf(it.Step) + " "
	head, indent = styleReply.Render(who), plain.Width(who)
	if it.Thinking != "" {
		thoughts := strings.TrimSpace(it.Thinking)
		label := fmt.Sprintf("▸ thinking, %s (/t)", protocol.Plural(strings.Count(thoughts, "\n")+1, "line"))
		if it.Unfolded {
			label = "▾ thinking"
		}
		if it.Open && it.silent() {
			label += " …"
		}
		out = append(out, hang(head, indent, label, width, styleDim.Render)...)
		if it.Unfolded {
			out = append(out, hang("  ", 2, thoughts, width, styleDim.Render)...)
		}
		head = strings.Repeat(" ", indent)
	}
	if indent > width/4 { // the name has a line of its own
		if it.Thinking == "" {
			out = append(out, plain.Cut(head, width, "…"))
		}
		indent, head = 2, "  "
	}
	return out, head, indent
}

// blocks is in how many blocks an item is drawn, each by itself; complete are those that stay as they are while it
// grows.
func (it *Item) blocks() (n, complete int) {
	if it.Kind != Reply {
		return 1, 0
	}
	it.settle()
	tail := it.tail
	if it.silent() && it.Thinking == "" && it.Open {
		tail = "…"
	}
	if !it.body.Grow(it.Text, tail) {
		return 1 + it.body.Len(), 0
	}
	return 1 + it.body.Len(), 1 + it.body.Complete()
}

// silent reports whether a reply has no text yet.
func (it *Item) silent() bool { return it.Text == "" && it.tail == "" }

// block are the lines of a block.
func (it *Item) block(i, width int, whole bool) []string {
	if it.Kind != Reply {
		return it.lines(width, whole)
	}
	width = max(width, 1)
	out, head, indent := it.replyHead(width)
	if i == 0 {
		return out
	}
	if it.silent() && it.Thinking != "" {
		return nil
	}
	lines := it.body.Lines(i-1, width-indent)
	out = make([]string, len(lines))
	for j, l := range lines {
		if i > 1 || j > 0 {
			head = strings.Repeat(" ", indent)
		}
		out[j] = head + l
	}
	return out
}

// questionLines shows what a person is asked: in Markdown, or, for a tool call, as it is.
func (it *Item) questionLines(width int, whole bool) []string {
	if it.Gone {
		return nil
	}
	out := []string{""}
	text := markdown.Lines
	if it.Diff != "" || it.Call != "" {
		text = plain.Wrap
	}
	for i, l := range text(it.Text, max(1, width-2)) {
		out = append(out, plain.Cut(map[bool]string{true: styleQuestion.Render("? "), false: "  "}[i == 0]+l, width, ""))
	}
	return append(out, indented(it.asked(width, whole))...)
}

// asked are the lines of a call that a person is asked for.
func (it *Item) asked(width int, whole bool) []string {
	switch {
	case it.Diff != "":
		return fold(diffLines(it.Diff, max(1, width-2)), foldedDiff, whole)
	case it.Call != "":
		return fold(verbatim(it.Call, max(1, width-2)), foldedDiff, whole)
	}
	return nil
}

func indented(lines []string) []string {
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return lines
}

func (it *Item) toolLines(width int, whole bool) []string {
	out := append([]string{""}, hang(styleTool.Render("$ "), 2, it.Name+"("+it.Args+")", width, styleTool.Render)...)
	if it.Diff != "" && !it.Asked {
		out = append(out, indented(fold(diffLines(it.Diff, max(1, width-2)), foldedDiff, whole))...)
	}
	style := styleDim
	if it.Failed {
		style = styleFailed
	}
	text := it.Text
	if text == "" && it.Open {
		text = "running…"
		if it.Asked {
			text = "waits for your answer"
		}
	}
	if text == "" {
		return out
	}
	all := plain.Wrap(text, max(1, width-2))
	for i := range all {
		all[i] = style.Render(all[i])
	}
	if n := len(all) - foldedResult; it.Open && n > 0 && !whole {
		all = append([]string{styleDim.Render(fmt.Sprintf("… %d lines before", n))}, all[n:]...)
	} else if !it.Open {
		all = fold(all, foldedResult, whole)
	}
	return append(out, indented(all)...)
}

// hang wraps a text behind a head of headWidth cells; further lines are indented by as much,
// where there is room.
func hang(head string, headWidth int, text string, width int, style func(...string) string) []string {
	indent := headWidth
	if indent > width/3 {
		indent = 0
	}
	room := width - indent
	if headWidth >= width {
		head, headWidth = "", 0
	}
	var out []string
	for i, l := range plain.Wrap(text, max(1, room-(headWidth-indent))) {
		if i == 0 {
			out = append(out, head+style(l))
			continue
		}
		out = append(out, strings.Repeat(" ", indent)+style(l))
	}
	return out
}

// roleOf is the role of a step: coder of coder#2.
func roleOf(step string) string {
	role, _, _ := strings.Cut(step, "#")
	return plain.Text(role)
}

// arguments shows the arguments of a call as name=value, in the order written.
func arguments(raw string) string {
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return plain.Text(plain.Line(raw, argumentMax))
	}
	var parts []string
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			break
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			var compact bytes.Buffer
			if json.Compact(&compact, value) == nil {
				text = compact.String()
			}
		}
		parts = append(parts, fmt.Sprintf("%v=%s", name, plain.Line(text, argumentMax)))
	}
	return plain.Text(strings.Join(parts, ", "))
}

// argumentMax bounds one argument in the header of a tool, in runes.
const argumentMax = 120

// withoutFields is the body of an answer that begins with frontmatter.
func withoutFields(s string) string {
	rest, ok := strings.CutPrefix(s, "---\n")
	if !ok {
		return s
	}
	if fields, body, ok := strings.Cut(rest, "\n---\n"); ok {
		if strings.TrimSpace(body) == "" {
			return fields
		}
		return body
	}
	if fields, ok := strings.CutSuffix(rest, "\n---"); ok {
		return fields
	}
	return s
}

// foreign is the source of words that did not come from a person's own screen.
func (t *Transcript) foreign(source string) string {
	switch source {
	case "", "cli", "terminal", "chat", "http", t.Me:
		return ""
	}
	return plain.Text(source)
}
