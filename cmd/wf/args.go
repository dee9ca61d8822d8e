package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/cmd/internal/help"
	"wf/protocol"
	"wf/protocol/lazy"
)

// latest is a reference such as -1 or -2:coder#1, which a flag parser takes for flags.
var latest = lazy.Regexp(`^-\d+(:|$)`)

// latestMark stands in front of a rewritten -1 on its way through the flag parser.
const latestMark = "@"

// latestRefs rewrites the references to the latest runs, but not where they are the value of
// a flag or behind --.
func latestRefs(root *cobra.Command, args []string) []string {
	takesValue := valueFlags(root, args)
	out := make([]string, len(args))
	copy(out, args)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		if latest().MatchString(arg) && (i == 0 || !takesValue[args[i-1]]) {
			out[i] = latestMark + arg
		}
	}
	return out
}

// valueFlags are the flags of the command that args name whose value is the next argument.
func valueFlags(root *cobra.Command, args []string) map[string]bool {
	cmd, _, err := root.Find(args)
	if err != nil {
		cmd = root
	}
	out := map[string]bool{}
	add := func(f *pflag.Flag) {
		if f.NoOptDefVal != "" {
			return
		}
		out["--"+f.Name] = true
		if f.Shorthand != "" {
			out["-"+f.Shorthand] = true
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	return out
}

// written is an argument as it was given.
func written(arg string) string {
	if rest, ok := strings.CutPrefix(arg, latestMark); ok && latest().MatchString(rest) {
		return rest
	}
	return arg
}

// takes checks the number of arguments and names the missing one.
func takes(least, most int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("wf %s needs %s", commandName(cmd), names[len(args)])
		case most >= 0 && len(args) > most:
			extra := written(args[most])
			if strings.Contains(extra, "=") && cmd.Flags().Lookup("input") != nil {
				return protocol.ErrUsage.With(fmt.Sprintf("inputs are given with -i: wf %s %s -i %s", commandName(cmd), protocol.ShellCommand(args[:most]...), protocol.ShellWord(extra)),
					"wf %s: unexpected argument %q", commandName(cmd), extra)
			}
			return usagef("wf %s: unexpected argument %q", commandName(cmd), extra)
		}
		return nil
	}
}

// commandName is the name below wf: "cas put".
func commandName(cmd *cobra.Command) string {
	_, name, ok := strings.Cut(cmd.CommandPath(), " ")
	if !ok {
		return cmd.Name()
	}
	return name
}

// badFlag is an error of the flag parser; of a flag that is not there it names the nearest one.
func badFlag(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || len(unknown.GetSpecifiedName()) < 2 {
		return usage(err)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	best := help.Nearest(unknown.GetSpecifiedName(), names)
	if best == "" {
		return protocol.ErrUsage.With(cmd.CommandPath()+" --help lists the flags", "%v", err)
	}
	return protocol.ErrUsage.With("did you mean --"+best+"?", "%v", err)
}
