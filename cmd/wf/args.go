package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// latest is a reference such as -1 or -2:coder#1, which a flag parser takes for flags.
var latest = regexp.MustCompile(`^-\d+(:|$)`)

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
		if latest.MatchString(arg) && (i == 0 || !takesValue[args[i-1]]) {
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
	if rest, ok := strings.CutPrefix(arg, latestMark); ok && latest.MatchString(rest) {
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
			return usagef("wf %s: unexpected argument %q", commandName(cmd), written(args[most]))
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

// plural is "1 run", "2 runs".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
