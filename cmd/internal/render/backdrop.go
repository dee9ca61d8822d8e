package render

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"wf/cas"
	"wf/protocol"
)

// A Backdrop is what a reporter looks up beside the events: the edges of the workflow, and the
// records of the steps.
type Backdrop struct {
	Context context.Context
	Blocks  protocol.Blocks
	Edges   []protocol.Edge
	Fold    *Folder         // of long fan-outs; nil shows every item
	steers  map[string]bool // calls by which agents steer their tasks: task events tell the same
	// Price is what a model call costs in pico-dollars, nil where it has no price; it may be nil itself.
	Price func(protocol.Usage) *int64
	Guest bool // another process drives the run: to leave does not stop it
	// Commands is Printer.Commands; nil leaves texts as they are.
	Commands func(text string) string
}

func (b Backdrop) commands(text string) string {
	if b.Commands == nil {
		return text
	}
	return b.Commands(text)
}

func (b Backdrop) leaving() string {
	if b.Guest {
		return "Ctrl-C leaves, the run goes on"
	}
	return "Ctrl-C suspends safely"
}

// tell is tell, with how a command ended.
func (b Backdrop) tell(d protocol.Data) string {
	switch d := d.(type) {
	case protocol.ToolCall:
		steers := protocol.IsTaskControl(d.Name)
		if b.steers != nil {
			b.steers[d.Call] = steers // ids of calls may repeat between steps
		}
		if steers {
			return ""
		}
	case protocol.ToolResult:
		if b.steers[d.Call] && !d.IsError {
			return ""
		}
	}
	if done, ok := d.(protocol.StepCompleted); ok {
		return strings.TrimSpace(Event(d) + "  " + b.exit(done))
	}
	return Event(d)
}

// exit is "exit 1" for the step of a command, "" for others.
func (b Backdrop) exit(d protocol.StepCompleted) string {
	code, _ := b.command(d)
	if code == nil {
		return ""
	}
	return fmt.Sprintf("exit %d", *code)
}

// record is what a step concluded: its fields, and what it said or wrote. A record that cannot be read is no reason to
// stop the run: wf verify tells of it.
func (b Backdrop) record(d protocol.StepCompleted) (data []byte, said func() string) {
	var record protocol.StepRecord
	raw, err := b.Blocks.Block(b.Context, d.Record)
	if err != nil || cas.Decode(raw, &record) != nil {
		return nil, nil
	}
	if record.Data.Defined() {
		if data, err = protocol.ReadPayload(b.Context, b.Blocks, record.Data); err != nil {
			return nil, nil
		}
	}
	return data, func() string {
		if !record.Output.Defined() {
			return ""
		}
		text, err := protocol.ReadPayload(b.Context, b.Blocks, record.Output)
		if err != nil {
			return ""
		}
		return string(text)
	}
}

// command is how the step of a command ended and what it wrote; a nil code is no command.
func (b Backdrop) command(d protocol.StepCompleted) (code *int, wrote func() string) {
	data, said := b.record(d)
	var fields struct {
		ExitCode *int `json:"exit_code"`
	}
	if json.Unmarshal(data, &fields) != nil {
		return nil, nil
	}
	return fields.ExitCode, said
}

// concluded is the most telling part of what a step concluded, "" where there is none.
func (b Backdrop) concluded(d protocol.StepCompleted) string {
	data, said := b.record(d)
	if said == nil {
		return ""
	}
	fields, err := fieldsOf(data)
	if err != nil {
		return ""
	}
	fields = slices.DeleteFunc(fields, func(f field) bool { return f.name == "exit_code" })
	if text := said(); text != "" {
		return cmp.Or(gist(text), telling(fields, ""))
	}
	return telling(fields, "")
}

// wroteLines is how much of what a command wrote is shown below its step, its end.
const wroteLines = 20

// wrote are the lines that a command wrote, the last ones; the first one then says how many are
// left out, and what shows them.
func (b Backdrop) wrote(run protocol.RunID, step string, data protocol.Data) []string {
	d, ok := data.(protocol.StepCompleted)
	if !ok {
		return nil
	}
	code, text := b.command(d)
	if code == nil {
		return nil
	}
	said := strings.TrimRight(Visible(text()), "\n")
	if said == "" {
		return nil
	}
	lines := strings.Split(said, "\n")
	if left := len(lines) - wroteLines; left > 0 {
		lines = append([]string{fmt.Sprintf("… %s before: %s", protocol.Plural(left, "line"), b.commands(wf("log", string(run)+":"+step)))}, lines[left:]...)
	}
	for i, l := range lines {
		lines[i] = "    " + l
	}
	return lines
}

// way is the edge by which a step was entered: "test → coder".
func (b Backdrop) way(d protocol.StepStarted) string {
	if d.Edge < 0 || d.Edge >= len(b.Edges) {
		return d.Role
	}
	return strings.Join(b.Edges[d.Edge].From, "+") + " → " + d.Role
}

// Logged are the lines of an event in wf log, with wrote also what a command wrote; none for an item
// that is folded.
func (b Backdrop) Logged(run protocol.RunID, e *protocol.Entry, d protocol.Data, wrote bool) []string {
	x := b.fold(run, e.StepName(), e.TS, d)
	lines := x.stamped(e, x.before)
	if x.own {
		text := Event(d)
		if d == nil {
			text = string(e.Type)
		}
		if text != "" {
			lines = append(lines, eventLine(e, text))
		}
		if wrote {
			lines = append(lines, b.wrote(run, e.StepName(), d)...)
		}
	}
	return append(lines, x.stamped(e, x.behind)...)
}

// stamped are lines about a fan-out, with the time of an event.
func (x folding) stamped(e *protocol.Entry, texts []string) (lines []string) {
	for _, text := range texts {
		lines = append(lines, stamped(e, x.fan.name, text))
	}
	return lines
}
