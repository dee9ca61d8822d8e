package chat

import (
	"fmt"
	"strings"

	"wf/cmd/internal/plain"
	"wf/protocol"
)

type command struct{ name, arg string }

var commands = []struct {
	name  string
	alias []string
	arg   string
	what  string
}{
	{"clear", []string{"c"}, "", "clear the screen; PageUp brings it back"},
	{"compact", []string{"cp"}, "", "summarise the conversation now"},
	{"reset", nil, "", "begin a new run; what this one remembered is forgotten"},
	{"dump", nil, "[path]", "write the memories to a file"},
	{"think", []string{"t"}, "", "show or fold the reasoning of the last answer"},
	{"resume", nil, "[cost_usd=9]", "go on after an interruption, an error, a limit"},
	{"fork", nil, "[step]", "go on in a fork of this run"},
	{"undo", nil, "[--force]", "take the last message back to the box, with the files"},
	{"redo", nil, "[--force]", "bring back what the last undo took, with the files"},
	{"rewind", nil, "[step]", "take back all from a message on; without one, choose"},
	{"cost", []string{"usage", "$"}, "", "tokens and cost; $ in an empty line does the same"},
	{"task", []string{"tasks"}, "[step]", "browse the tasks of this run"},
	{"memory", nil, "[words]", "what is remembered"},
	{"model", nil, "[name]", "choose the model from here on"},
	{"sessions", []string{"chats"}, "", "list all chats, and go to one"},
	{"help", []string{"h"}, "", "this"},
	{"quit", []string{"q", "exit"}, "", "leave; the run stays as it is"},
}

// commandOf reads a line. A line with two slashes is text that begins with one.
func commandOf(line string) (command, bool) {
	if line == "$" {
		return command{name: "cost"}, true
	}
	rest, ok := strings.CutPrefix(line, "/")
	if !ok || strings.HasPrefix(rest, "/") || strings.Contains(line, "\n") {
		return command{}, false
	}
	name, arg, _ := strings.Cut(rest, " ")
	if name == "?" {
		name = "help"
	}
	for _, c := range commands {
		for _, a := range c.alias {
			if a == name {
				name = c.name
			}
		}
	}
	return command{name, strings.TrimSpace(arg)}, true
}

// begunWith are the commands that a line being written may become, as lines, and the one that
// is meant if there is only one, or the first.
func begunWith(line string) (list []string, first string) {
	rest, ok := strings.CutPrefix(line, "/")
	if !ok || strings.ContainsAny(rest, " /\n") {
		return nil, ""
	}
	for _, c := range commands {
		if !strings.HasPrefix(c.name, rest) {
			continue
		}
		if first == "" {
			first = c.name
		}
		list = append(list, fmt.Sprintf(" %-22s %s", strings.TrimSpace("/"+c.name+" "+c.arg), c.what))
	}
	return list, first
}

// nearest is the command that a word was probably meant to be, "" where none is near.
func nearest(word string) string {
	best, least := "", 2+len(word)/3
	for _, c := range commands {
		if d := protocol.Edits(word, c.name); len(word) <= 2*len(c.name) && d < least {
			best, least = c.name, d
		}
	}
	return best
}

var keys = [][2]string{
	{"Enter", "send"},
	{"Alt+Enter, Ctrl+J", "begin a new line; Shift+Enter too"},
	{"Up, Down", "go through what you wrote"},
	{"Tab", "complete a command"},
	{"PageUp, PageDown", "scroll; Shift+Up and Shift+Down by lines"},
	{"End", "follow again"},
	{"Esc", "stop the agent; what you write then redirects it"},
	{"y, a, n", "allow a tool call once, allow exactly this call until the run ends, or deny it"},
	{"Ctrl+O", "show all of what is folded, or fold it"},
	{"@", "names a file of the workspace; Tab completes it"},
	{"Ctrl+C", "empty the line, stop the agent; twice leaves"},
	{"//", "begins a text with a slash"},
}

// helpWidth is the column of names in the help.
const helpWidth = 21

func helpLines(width int) []string {
	row := func(name, what string) []string {
		if width < 2*helpWidth {
			return append(plain.Wrap(styleTool.Render(name), width), hang("  ", 2, what, width, plainStyle)...)
		}
		return hang(styleTool.Render(plain.Pad(name, helpWidth)), helpWidth, what, width, plainStyle)
	}
	var out []string
	for _, c := range commands {
		name := "/" + c.name
		for _, a := range c.alias {
			name += " " + strings.Replace("/"+a, "/$", "$", 1)
		}
		out = append(out, row(strings.TrimSpace(name+" "+c.arg), c.what)...)
	}
	out = append(out, "")
	for _, k := range keys {
		out = append(out, row(k[0], k[1])...)
	}
	return append(append(out, ""), plain.Wrap("What you say while the agent works is its next turn. After Esc or an error, it goes on with what you say.", width)...)
}
