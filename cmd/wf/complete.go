package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/api"
	"wf/cas"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/service/query"
	"wf/workflows"
)

// The usage line of a command says what its arguments are, and so what Tab offers for them:
//
//	RUN                       the latest runs
//	RUN:STEP  RUN[:STEP]      runs, and behind the colon the steps of that one
//	FILE  FILE.car  DIR       workflows, files with that ending, directories
//	FILE:ROLE                 behind the colon the agents of that workflow
//
// Anything else is for the person to write. What cannot be read offers nothing.

// flagValues are the values of flags that have few.
var flagValues = map[string][]string{
	"by":      api.CostGroups,
	"codec":   {"dag-cbor", "dag-json", "raw"},
	"color":   {"auto", "always", "never"},
	"context": {"conversation", "task", "fresh"},
	"form":    {"ascii", "svg", "mermaid"},
	"limit":   {"steps=", "tokens=", "cost_usd=", "duration="},
	"status":  runStatuses,
}

// flagFiles are the endings of the files that flags name, "" is any file and "/" a directory.
var flagFiles = map[string]string{
	"client-ca": "", "data": "/", "dir": "/", "hub-ca": "", "hub-cert": "", "hub-key": "", "hub-token-file": "", "inputs": "json",
	"out": "/", "record": "", "store": "/", "tls-cert": "", "tls-key": "", "token-file": "", "with": "yaml", "workflows": "/",
}

// offer makes every command of the tree complete its arguments and flags.
func (a *app) offer(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil && !cmd.HasSubCommands() {
		cmd.ValidArgsFunction = a.offerArgument
	}
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal != "" {
				return
			}
			if err := cmd.RegisterFlagCompletionFunc(f.Name, a.offerFlag(f.Name)); err != nil {
				panic(err) // a second offer for one flag, or one for a flag that is not there
			}
		})
	}
	for _, sub := range cmd.Commands() {
		a.offer(sub)
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

// offerArgument offers what the next argument may be.
func (a *app) offerArgument(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	begun = written(begun)
	name, _, inside := strings.Cut(begun, ":")
	var out []string
	directive := cobra.ShellCompDirectiveNoFileComp
	files := ""
	kinds := kindsOf(cmd, len(args))
	for _, kind := range kinds {
		switch {
		case kind == "RUN" && !inside:
			out = append(out, a.offeredRuns(cmd.Context(), "")...)
		case strings.HasPrefix(kind, "RUN") && inside:
			out = append(out, a.offeredSteps(cmd.Context(), name)...)
		case kind == "RUN[:STEP]":
			out = append(out, a.offeredRuns(cmd.Context(), "")...)
		case kind == "RUN:STEP" && !slices.Contains(kinds, "RUN"):
			out = append(out, a.offeredRuns(cmd.Context(), ":")...)
			directive |= cobra.ShellCompDirectiveNoSpace
		case kind == "FILE:ROLE" && inside:
			out = append(out, a.offeredRoles(name, name+":", "")...)
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

// offerFlag offers the values of a flag.
func (a *app) offerFlag(name string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ending, file := flagFiles[name]
		switch {
		case name == "output":
			if formats := formatsOf(cmd); formats != nil {
				return formats, cobra.ShellCompDirectiveNoFileComp
			}
			return offeredFiles("")
		case file:
			return offeredFiles(ending)
		case name == "input" && len(args) > 0:
			return a.offeredInputs(args[0]), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		case name == "field" && len(args) > 0:
			return a.offeredFields(cmd.Context(), args[0], begun), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		case name == "model" && len(args) > 0:
			return a.offeredRoles(args[0], "", "="), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		case name == "scope" && cmd.HasParent() && cmd.Parent().Name() == "memory":
			return a.offeredScopes(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
		case name == "example":
			var out []string
			for _, e := range workflows.Examples {
				out = append(out, e.Name+"\t"+e.About)
			}
			return out, cobra.ShellCompDirectiveNoFileComp
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

// offeredRuns are the runs that moved last.
func (a *app) offeredRuns(ctx context.Context, behind string) []string {
	var out []string
	err := a.WithStore(ctx, func(s *cas.Store) error {
		rows, _, err := query.Runs(ctx, a.Engine(s, nil), api.Query{Limit: 20})
		for _, r := range rows {
			out = append(out, string(r.ID)+behind+"\t"+r.Workflow+", "+string(r.Status))
		}
		return err
	})
	if err != nil {
		return nil
	}
	return out
}

// offeredSteps are the steps of a run that is named as the person began.
func (a *app) offeredSteps(ctx context.Context, name string) []string {
	var out []string
	err := a.WithStore(ctx, func(s *cas.Store) error {
		run, err := a.resolveRun(ctx, s, name)
		if err != nil {
			return err
		}
		v, err := a.Engine(s, nil).View(ctx, run)
		for _, step := range v.Steps {
			out = append(out, name+":"+step.ID+"\t"+string(step.Status))
		}
		return err
	})
	if err != nil {
		return nil
	}
	return out
}

// offeredFields are the fields of the form that a run waits for, and behind the name of one
// that has few values those.
func (a *app) offeredFields(ctx context.Context, arg, begun string) []string {
	var out []string
	name, _, named := strings.Cut(begun, "=")
	err := a.WithStore(ctx, func(s *cas.Store) error {
		at, err := a.resolve(ctx, s, arg)
		if err != nil {
			return err
		}
		v, err := a.Engine(s, nil).View(ctx, at.Run)
		if err != nil {
			return err
		}
		for _, w := range v.Waiting {
			if at.Step != "" && at.Step != w.Step {
				continue
			}
			for _, f := range protocol.FormFields(string(w.Form)) {
				if !named {
					out = append(out, f.Name+"=\t"+render.OneLine(cmp.Or(f.Description, render.AboutField(f)), 80))
					continue
				}
				values := f.Enum
				if f.Type == "boolean" {
					values = []protocol.JSON{protocol.JSON("true"), protocol.JSON("false")}
				}
				for _, v := range values {
					if f.Name == name {
						out = append(out, f.Name+"="+protocol.JSONText(v))
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return out
}

// offeredRoles are the agents of a workflow file.
func (a *app) offeredRoles(file, before, behind string) []string {
	var out []string
	for _, r := range a.offeredWorkflow(file).Roles {
		if r.Action == protocol.ActPrompt {
			out = append(out, before+r.Name+behind)
		}
	}
	return out
}

// offeredInputs are the inputs of a workflow file.
func (a *app) offeredInputs(file string) []string {
	var out []string
	inputs := a.offeredWorkflow(file).Inputs
	for _, name := range sortedKeys(inputs) {
		out = append(out, name+"=\t"+inputs[name].Description)
	}
	return out
}

// offeredWorkflow reads a workflow, which is empty where the file holds none. Nobody has
// written one on stdin yet.
func (a *app) offeredWorkflow(file string) protocol.Workflow {
	if file == "-" {
		return protocol.Workflow{}
	}
	d, err := a.Read(file)
	if err != nil || d.Program == nil {
		return protocol.Workflow{}
	}
	return *d.Program.Workflow
}

// offeredScopes are the memories of the store.
func (a *app) offeredScopes(ctx context.Context) []string {
	var out []string
	err := a.WithStore(ctx, func(s *cas.Store) error {
		heads, err := s.Heads(ctx, protocol.MemoryHead(""))
		for _, h := range heads {
			out = append(out, strings.TrimPrefix(h.Name, protocol.MemoryHead("")))
		}
		return err
	})
	if err != nil {
		return nil
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
