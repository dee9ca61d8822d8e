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

// resultLines is how many lines of a tool's result are shown.
const resultLines = 10

// lines are the lines of an item at a width, with a blank one before what begins a turn.
func (it *Item) lines(width int) []string {
	width = max(width, 1)
	switch it.Kind {
	case You:
		who := "you "
		if it.Source != "" {
			who = it.Source + " "
		}
		return append([]string{""}, hang(styleYou.Render(who), plain.Width(who), it.Text, width, plainStyle)...)
	case Reply:
		return it.replyLines(width)
	case Tool:
		return it.toolLines(width)
	case Question:
		out := []string{""}
		for i, l := range markdown.Lines(it.Text, max(1, width-2)) {
			out = append(out, plain.Cut(map[bool]string{true: styleQuestion.Render("? "), false: "  "}[i == 0]+l, width, ""))
		}
		return out
	default:
		style := styleDim
		if it.Failed {
			style = styleFailed
		}
		return hang(style.Render("· "), 2, it.Text, width, style.Render)
	}
}

func plainStyle(s ...string) string { return strings.Join(s, "") }

func (it *Item) replyLines(width int) []string {
	it.settle()
	out := []string{""}
	who := roleOf(it.Step) + " "
	head := styleReply.Render(who)
	if it.Thinking != "" {
		thoughts := strings.TrimSpace(it.Thinking)
		label := fmt.Sprintf("▸ thinking, %s (/t)", protocol.Plural(strings.Count(thoughts, "\n")+1, "line"))
		if it.Unfolded {
			label = "▾ thinking"
		}
		if it.Open && it.Text == "" {
			label += " …"
		}
		out = append(out, hang(head, plain.Width(who), label, width, styleDim.Render)...)
		if it.Unfolded {
			out = append(out, hang("  ", 2, thoughts, width, styleDim.Render)...)
		}
		if it.Text == "" {
			return out
		}
		head = strings.Repeat(" ", plain.Width(who))
	}
	text := it.Text
	if text == "" && it.Open {
		text = "…"
	}
	indent := plain.Width(who)
	if indent > width/4 { // the name has a line of its own
		if it.Thinking == "" {
			out = append(out, plain.Cut(head, width, "…"))
		}
		indent, head = 2, "  "
	}
	for i, l := range it.shown.Lines(text, width-indent) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		out = append(out, head+l)
	}
	return out
}

func (it *Item) toolLines(width int) []string {
	out := append([]string{""}, hang(styleTool.Render("$ "), 2, it.Name+"("+it.Args+")", width, styleTool.Render)...)
	style := styleDim
	if it.Failed {
		style = styleFailed
	}
	text := it.Text
	if text == "" && it.Open {
		text = "running…"
		if it.Asked {
			text = "waits for your word"
		}
	}
	if text == "" {
		return out
	}
	all := plain.Wrap(text, width-2)
	if it.Open && len(all) > resultLines {
		all = append([]string{fmt.Sprintf("… %d lines before", len(all)-resultLines)}, all[len(all)-resultLines:]...)
	} else if len(all) > resultLines {
		all = append(all[:resultLines:resultLines], fmt.Sprintf("… %d more lines", len(all)-resultLines))
	}
	for _, l := range all {
		out = append(out, "  "+style.Render(l))
	}
	return out
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
