package chat

import (
	"fmt"
	"strings"
)

// a line that begins with a slash.
type command struct{ name, arg string }

// commands are all there are, in the order of the help.
var commands = []struct {
	name  string
	alias []string
	arg   string
	what  string
}{
	{"clear", []string{"c"}, "", "clear the screen; nothing is lost, PageUp brings it back"},
	{"compact", []string{"cp"}, "", "summarise the conversation now"},
	{"reset", nil, "", "begin a new run; memories of this one get tombstones"},
	{"dump", nil, "[path]", "write the memories to a file"},
	{"think", []string{"t"}, "", "show or fold the reasoning of the last answer"},
	{"resume", nil, "[cost_usd=9]", "go on after an interruption, an error, past a limit"},
	{"fork", nil, "[step]", "go on in a fork of this run"},
	{"cost", []string{"usage", "$"}, "", "tokens and cost; $ in an empty line does the same"},
	{"task", []string{"tasks"}, "[step]", "browse the tasks of this run"},
	{"memory", nil, "[words]", "what is remembered"},
	{"model", nil, "[name]", "the model, or another one from here on"},
	{"help", []string{"h", "?"}, "", "this"},
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

// keysText is the second half of the help.
const keysText = `Enter          send
Alt+Enter      begin a new line; Shift+Enter and Ctrl+J too
Up, Down       go through what you wrote; Tab completes a command
PageUp, PageDn scroll; Shift+Up and Shift+Down by lines, End follows again
Esc            interrupt the agent
Ctrl+C         empty the line; twice leaves

Two slashes begin a text with a slash. What you say while the agent works waits for its next turn.`

// helpText lists the commands and keys.
func helpText() string {
	var b strings.Builder
	for _, c := range commands {
		var alias []string
		for _, a := range c.alias {
			alias = append(alias, "/"+a)
		}
		fmt.Fprintf(&b, "%-22s %-11s %s\n", strings.TrimSpace("/"+c.name+" "+c.arg), strings.Join(alias, " "), c.what)
	}
	return strings.ReplaceAll(b.String(), "/$", "$") + "\n" + keysText
}
