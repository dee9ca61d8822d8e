package main

import (
	"github.com/spf13/cobra"

	"wf/engine/layout"
)

func newGraph(a *app) *cobra.Command {
	var form string
	cmd := &cobra.Command{
		Use:   "graph FILE",
		Short: "Draw a workflow",
		Long:  "Draw a workflow as text, SVG or Mermaid. The same file gives the same bytes everywhere.",
		Example: `  wf graph workflow.yaml
  wf graph workflow.yaml -f svg > workflow.svg
  wf graph workflow.yaml -f mermaid`,
		Args:        takes(1, 1, "a workflow file"),
		Annotations: map[string]string{formatsKey: "human"},
		RunE: func(_ *cobra.Command, args []string) error {
			_, p, err := a.readValid(args[0])
			if err != nil {
				return err
			}
			switch form {
			case "ascii", "text":
				width := a.Out.Width
				if width <= 0 {
					width = 80
				}
				err = layout.Of(p.Workflow).ASCII(a.Out, width)
			case "svg":
				err = layout.Of(p.Workflow).SVG(a.Out, layout.Overlay{})
			case "mermaid":
				err = layout.Of(p.Workflow).Mermaid(a.Out)
			default:
				return usagef("-f %q: want ascii, svg or mermaid", form)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&form, "form", "f", "ascii", "form of the picture: ascii, svg or mermaid")
	return cmd
}
