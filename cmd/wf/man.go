package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wf/cmd/internal/help"
	"wf/protocol"
)

// newMan writes the pages of the manual, which are made from the commands themselves. It is for
// those who make packages, and so no help lists it.
func newMan(a *app) *cobra.Command {
	date := ""
	cmd := &cobra.Command{
		Use:    "man [COMMAND...]",
		Short:  "Write a page of the manual",
		Hidden: true,
		Long: `Write the page of a command for man, or with -o json all pages as an object from their file names
to their texts.`,
		Example: `  wf man run | man -l -
  wf man -o json --date 2026-01-31`,
		Annotations: map[string]string{formatsKey: "human json"},
		RunE: func(cmd *cobra.Command, args []string) error {
			pages := help.Manual{Version: version(), Date: date, Exits: exits}.Pages(cmd.Root())
			if a.Format == "json" {
				return a.Answer(map[string]any{"schema": "wf.man/v1", "pages": pages})
			}
			page, found := pages[strings.Join(append([]string{"wf"}, args...), "-")+".1"]
			if !found {
				return protocol.ErrUsage.With("wf --help lists the commands", "there is no command wf %s", strings.Join(args, " "))
			}
			_, err := fmt.Fprint(a.Out, page)
			return err
		},
	}
	cmd.Flags().StringVar(&date, "date", "", "date in the pages, as 2026-01-31")
	return cmd
}
