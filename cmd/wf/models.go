package main

import (
	"github.com/spf13/cobra"

	"wf/api"
	"wf/engine/lang"
)

func newModels(a *app) *cobra.Command {
	var probe bool
	cmd := &cobra.Command{
		Use:   "models [FILE]",
		Short: "Show the providers there are, and which models a workflow would use",
		Long: `Show where models come from: the providers of this binary and of the configs, whether their keys are set,
and the default. With a workflow also what each of its agents would use, and why. --probe asks the servers on
this machine, and those of the configs and of OPENAI_BASE_URL that want no key; what it finds is only suggested.`,
		Example: `  wf models
  wf models workflow.yaml
  wf models --probe`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			var p *lang.Program
			if len(args) == 1 {
				if _, p, err = a.readValid(args[0]); err != nil {
					return err
				}
			}
			m, err := a.Models(cmd.Context(), p, probe)
			return answer(a, m, err, func(m *api.Models) error { return a.ShowModels(m, probe) })
		},
	}
	cmd.Flags().BoolVar(&probe, "probe", false, "ask the servers on this machine which models they have")
	return cmd
}
