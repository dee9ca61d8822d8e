package chat

import (
	"encoding/json"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/aymanbagabas/go-udiff"

	"wf/cmd/internal/plain"
	"wf/protocol"
)

// How many lines of what is long are shown before the person asks for all of it, by Ctrl+O.
const (
	foldedDiff   = 12
	foldedResult = 10
	foldedYou    = 20
)

// diffMax is how many bytes of an edit are compared; a longer one is shown by its arguments.
const diffMax = 256 << 10

// editOf is what a call of a tool that edits files does, as a difference, and to which file; "" for other calls.
// Nothing is read for it: of a file that is written whole, all lines are new.
func editOf(name, raw string) (path, diff string) {
	var args struct{ Path, Old, New, Content string }
	if name != "edit_file" && name != "write_file" || len(raw) > diffMax || json.Unmarshal([]byte(raw), &args) != nil {
		return "", ""
	}
	before, after := args.Old, args.New
	if name == "write_file" {
		before, after = "", args.Content
	}
	all := udiff.Unified("a", "b", before, after)
	_, all, _ = strings.Cut(all, "\n") // the names of the files
	_, all, _ = strings.Cut(all, "\n")
	var kept []string
	for l := range strings.Lines(all) {
		if l[0] == '+' || l[0] == '-' || l[0] == ' ' { // the numbers of lines are of the piece, not of the file
			kept = append(kept, strings.TrimSuffix(l, "\n"))
		}
	}
	return "path=" + plain.Text(plain.Line(args.Path, argumentMax)), plain.Text(strings.Join(kept, "\n"))
}

// ofCall splits the question for a tool call into what is asked and the call, which is shown as it is: Markdown
// would hide a part of it.
func ofCall(question string) (head, call string) {
	head, call, ok := strings.Cut(question, ":\n\n")
	if !ok {
		return question, ""
	}
	return head + ":", strings.TrimSuffix(call, "\n")
}

// styleHunk is of the lines that say where in a file a change is.
var styleHunk = lipgloss.NewStyle().Foreground(lipgloss.Color("6"))

// diffLines shows a difference, each line whole, on lines of at most width cells.
func diffLines(diff string, width int) []string {
	var out []string
	for l := range strings.SplitSeq(diff, "\n") {
		style := styleDim
		switch {
		case strings.HasPrefix(l, "+++ "), strings.HasPrefix(l, "--- "):
			style = styleQuestion
		case strings.HasPrefix(l, "@@"):
			style = styleHunk
		case strings.HasPrefix(l, "+"):
			style = styleWaits
		case strings.HasPrefix(l, "-"):
			style = styleFailed
		}
		for _, piece := range broken(l, width) {
			out = append(out, style.Render(piece))
		}
	}
	return out
}

// verbatim shows a text as it is, each line whole, on lines of at most width cells.
func verbatim(text string, width int) (out []string) {
	for l := range strings.SplitSeq(text, "\n") {
		out = append(out, broken(l, width)...)
	}
	return out
}

// broken cuts a line into pieces of at most width cells; no letter is left out.
func broken(l string, width int) (out []string) {
	for plain.Width(l) > width {
		head := plain.Cut(l, width, "")
		if head == "" || !strings.HasPrefix(l, head) { // one letter that is wider than the line
			break
		}
		out, l = append(out, head), l[len(head):]
	}
	return append(out, l)
}

// fold leaves the first most lines, and says how many are not shown.
func fold(lines []string, most int, whole bool) []string {
	if whole || len(lines) <= most {
		return lines
	}
	return append(lines[:most:most], styleDim.Render("… "+protocol.Plural(len(lines)-most, "more line")+" (Ctrl+O)"))
}

// decided takes in that a person decided on a call: the difference that was asked for is that of the call from
// here on.
func (t *Transcript) decided(key string) {
	call, question := t.calls[key], t.questions[key]
	if call != nil {
		call.Asked = false
		call.changed()
	}
	if call == nil || question == nil || call.Diff == "" {
		return
	}
	call.Diff, question.Gone = question.Diff, true
	question.changed()
}
