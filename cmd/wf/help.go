package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/cmd/internal/help"
	"wf/engine/lang"
	"wf/protocol"
)

// languageTopic is the name under which wf help shows the page of the language.
const languageTopic = "language"

// newHelp is wf help: the help of a command, or a topic. Unlike that of cobra it takes a part of the
// language, and what it does not know is an error.
func newHelp(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Help for a command, or a topic: language, expressions, exit-codes",
		Long: `Show the help of a command, or one of the topics:

  language           the workflow language: guides, and every key with an example
  language NAME      one guide or key, such as loops, retry or roles.*.retry
  expressions        what can stand in an expression, with all functions
  exit-codes         what the exit statuses mean`,
		Example: `  wf help run
  wf help language fan-out
  wf help language retry`,
		ValidArgsFunction: completeHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) > 0 && args[0] == languageTopic {
				return a.language(args[1:])
			}
			found, rest, err := root.Find(args)
			if err != nil || len(args) > 0 && found == root || len(rest) > 0 {
				return unknownHelp(root, args)
			}
			found.InitDefaultHelpFlag()
			found.InitDefaultVersionFlag()
			return found.Help()
		},
	}
}

// unknownHelp names what was probably meant.
func unknownHelp(root *cobra.Command, args []string) error {
	hint := "wf help lists the commands; wf help language NAME shows a key of workflows"
	var names []string
	for _, sub := range root.Commands() {
		names = append(names, sub.Name())
	}
	if near := help.Nearest(args[0], names); near != "" {
		hint = "did you mean wf help " + near + "?"
	} else if lang.Find(args[0]).Text != "" {
		hint = "it is a part of the language: wf help language " + protocol.ShellWord(args[0])
	}
	return protocol.ErrUsage.With(hint, "there is no help on %q", strings.Join(args, " "))
}

// language shows the page of the language, or a part of it.
func (a *app) language(args []string) error {
	switch len(args) {
	case 0:
		_, err := fmt.Fprint(a.Out, languagePage())
		return err
	case 1:
	default:
		return usagef("wf help language takes one name, such as retry or roles.*.retry")
	}
	found := lang.Find(args[0])
	if found.Text == "" {
		hint := "wf help language shows all guides and keys"
		if found.Near != "" {
			hint = "did you mean wf help language " + protocol.ShellWord(found.Near) + "?"
		}
		return protocol.ErrUsage.With(hint, "the language has no guide or key %q", args[0])
	}
	_, err := fmt.Fprint(a.Out, help.Text(found.Text))
	return err
}

func languagePage() string { return help.Text(lang.Page()) }

func expressionsPage() string { return help.Text(lang.Find("expressions").Text) }

// topic is a page about no command, by which commands and completion know it.
func (a *app) topic(name, short string, page func() string) *cobra.Command {
	topic := &cobra.Command{Use: name, Short: short}
	topic.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if _, err := fmt.Fprint(a.Out, page()); err != nil {
			cmd.PrintErrln(err)
		}
	})
	return topic
}

// completeHelp offers commands and topics, and behind language its parts.
func completeHelp(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var out []string
	switch {
	case len(args) == 1 && args[0] == languageTopic:
		out = lang.Topics()
	case len(args) == 0 || args[0] != languageTopic:
		at, _, err := cmd.Root().Find(args)
		if err != nil {
			break
		}
		for _, sub := range at.Commands() {
			if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
				out = append(out, sub.Name()+"\t"+sub.Short)
			}
		}
	}
	out = slices.DeleteFunc(out, func(s string) bool { return !strings.HasPrefix(s, prefix) })
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) help(cmd *cobra.Command, _ []string) {
	a.UseColors() // --help ends a command before start
	if _, err := fmt.Fprint(a.Out, help.Page(cmd, a.Out.Paint, a.Out.Width)); err != nil {
		cmd.PrintErrln(err)
	}
}
