package complete

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/api"
	"wf/protocol"
)

// The usage line of a command says what its arguments are, and so what Tab offers for them:
//
//	RUN                       the latest runs
//	RUN:STEP  RUN[:STEP]      runs, and behind the colon the steps of that one
//	FILE  FILE.car  DIR       workflows, files with that ending, directories
//	FILE:ROLE                 behind the colon the agents of that workflow
//
// Anything else is for the person to write. What cannot be read offers nothing.

// Statuses are the states that runs are listed by.
var Statuses = func() (out []string) {
	for _, s := range api.QueryStatuses {
		out = append(out, string(s))
	}
	return out
}()

var flagValues = map[string][]string{
	"by":      api.CostGroups,
	"codec":   {"dag-cbor", "dag-json", "raw"},
	"color":   {"auto", "always", "never"},
	"context": {"conversation", "task", "fresh"},
	"form":    {"ascii", "svg", "mermaid"},
	"log":     {"text", "json"},
	"limit":   {"steps=", "tokens=", "cost_usd=", "duration="},
	"status":  Statuses,

	"log-level":     {"debug", "info", "warn", "error"},
	"check-sandbox": {protocol.SandboxOn, protocol.SandboxOff},
}

// flagFiles are the endings of the files that flags name, "" is any file and "/" a directory.
var flagFiles = map[string]string{
	"bad": "yaml", "good": "yaml", "versions": "yaml",
	"client-ca": "", "data": "/", "dir": "/", "hub-ca": "", "hub-cert": "", "hub-key": "", "hub-token-file": "", "inputs": "json",
	"out": "/", "record": "", "state": "/", "store": "/", "tls-cert": "", "tls-key": "", "token-file": "", "with": "yaml", "workflows": "/",
}

// Offer makes every command of the tree complete its arguments and flags.
func (s *Source) Offer(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil && !cmd.HasSubCommands() {
		cmd.ValidArgsFunction = s.offerArgument
	}
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal != "" {
				return
			}
			if err := cmd.RegisterFlagCompletionFunc(f.Name, s.offerFlag(f.Name)); err != nil {
				panic(err) // a second offer for one flag, or one for a flag that is not there
			}
		})
	}
	for _, sub := range cmd.Commands() {
		s.Offer(sub)
	}
}

// kindsOf reads what the n-th argument of a command may be from its usage line.
func kindsOf(cmd *cobra.Command, n int) []string {
	words := strings.Fields(strings.ReplaceAll(cmd.Use, " | ", "|"))[1:]
	for i, w := range words {
		if rest, optional := strings.CutPrefix(w, "["); optional {
			words[i] = strings.TrimSuffix(rest, "]")
		}
	}
	if last := len(words) - 1; n > last && last >= 0 && strings.HasSuffix(words[last], "...") {
		n = last
	}
	if n >= len(words) {
		return nil
	}
	return strings.Split(strings.TrimSuffix(words[n], "..."), "|")
}

func (s *Source) offerArgument(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	begun = s.Written(begun)
	name, _, inside := strings.Cut(begun, ":")
	var out []string
	directive := cobra.ShellCompDirectiveNoFileComp
	files := ""
	kinds := kindsOf(cmd, len(args))
	for _, kind := range kinds {
		switch {
		case kind == "RUN" && !inside:
			out = append(out, s.offeredRuns(cmd.Context(), "")...)
		case strings.HasPrefix(kind, "RUN") && inside:
			out = append(out, s.offeredSteps(cmd.Context(), name)...)
		case kind == "RUN[:STEP]":
			out = append(out, s.offeredRuns(cmd.Context(), "")...)
		case kind == "RUN:STEP" && !slices.Contains(kinds, "RUN"):
			out = append(out, s.offeredRuns(cmd.Context(), ":")...)
			directive |= cobra.ShellCompDirectiveNoSpace
		case kind == "FILE:ROLE" && inside:
			out = append(out, s.offeredRoles(name, name+":", "")...)
		case kind == "FILE":
			files = "yaml"
		case kind == "DIR":
			files = "/"
		case strings.HasPrefix(kind, "FILE."):
			files = strings.TrimPrefix(kind, "FILE.")
		}
	}
	out = slices.DeleteFunc(out, func(s string) bool { return !strings.HasPrefix(s, begun) })
	if len(out) == 0 && files != "" && !inside {
		return offeredFiles(files)
	}
	return slices.Compact(out), directive
}

func (s *Source) offerFlag(name string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ending, file := flagFiles[name]
		switch {
		case name == "output":
			if formats := s.Formats(cmd); formats != nil {
				return formats, cobra.ShellCompDirectiveNoFileComp
			}
			return offeredFiles("")
		case file:
			return offeredFiles(ending)
		case name == "input" && len(args) > 0:
			return s.offeredInputs(args[0]), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		case name == "field" && len(args) > 0:
			return s.offeredFields(cmd.Context(), args[0], begun), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		case name == "model" && len(args) > 0:
			return s.offeredRoles(args[0], "", "="), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		case name == "scope" && cmd.HasParent() && cmd.Parent().Name() == "memory":
			return s.Scopes(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
		case name == "run" && (cmd.Name() == "ls" || cmd.Name() == "blame"):
			return s.offeredRuns(cmd.Context(), ""), cobra.ShellCompDirectiveNoFileComp
		case name == "example":
			return s.Examples, cobra.ShellCompDirectiveNoFileComp
		case name == "limit" && cmd.Name() != "resume" && cmd.Name() != "fork":
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return flagValues[name], cobra.ShellCompDirectiveNoFileComp
	}
}

// offeredFiles has the shell look for files with an ending.
func offeredFiles(ending string) ([]string, cobra.ShellCompDirective) {
	switch ending {
	case "":
		return nil, cobra.ShellCompDirectiveDefault
	case "/":
		return nil, cobra.ShellCompDirectiveFilterDirs
	case "yaml":
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	}
	return []string{ending}, cobra.ShellCompDirectiveFilterFileExt
}
