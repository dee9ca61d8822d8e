package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/protocol"
	"wf/store"
)

// placed are the flags with which a command line says where it works, the variables of the environment left out: those are the same
// for the next one.
var (
	atStoreFlags  = []string{"store"}
	atServerFlags = []string{"hub", "hub-token-file", "hub-ca"}
)

// through is Printer.Through: a command that is printed works where this one does. It is nil where that is so without flags.
func (a *app) through(root *cobra.Command) func(words []string) (name, flags string) {
	given := func(names []string) string {
		var words []string
		for _, name := range names {
			if f := root.PersistentFlags().Lookup(name); f != nil && f.Changed {
				if value := f.Value.String(); store.IsDatabase(value) && store.Shown(value) != value || strings.Contains(value, "@") && strings.Contains(value, "://") {
					return "" // it may hold a password
				}
				words = append(words, "--"+name, f.Value.String())
			}
		}
		return protocol.ShellCommand(words...)
	}
	local, server := given(atStoreFlags), given(atServerFlags)
	if local == "" && server == "" {
		return nil
	}
	return func(words []string) (name, flags string) {
		cmd := root
		for _, w := range words[:min(len(words), 2)] {
			i := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == w })
			if i < 0 {
				break
			}
			cmd = cmd.Commands()[i]
		}
		if cmd == root {
			return "", ""
		}
		switch top := words[0]; {
		case server != "" && everywhere[top]:
			flags = server
		case server == "" && (!nowhere[top] || top == "serve" || top == "doctor"):
			flags = local
		}
		if flags == "" {
			return "", ""
		}
		return commandName(cmd), flags
	}
}
