package main

import (
	"github.com/spf13/cobra"

	"wf/api"
	"wf/daemon"
	"wf/service/doctor"
)

func newDoctor(a *app) *cobra.Command {
	var clean bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at what wf needs here: store, config, models, sandbox",
		Long: `Look at the store, the configs, the keys of the models, the sandbox of agents' commands and the daemon, and tell
what is missing and how to put it right. It ends with 1 where something does not work.

The commands of agents have caches and temporary files of their own, by workspace; --clean removes those that
none has used for 30 days.`,
		Example: `  wf doctor
  wf doctor -o json
  wf doctor --clean`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			beside, _ := a.Beside(cmd.Context()) // what is wrong with it, the checkup of the store says
			served, err := daemon.Served(cmd.Context(), beside)
			var names []string
			for _, w := range served {
				names = append(names, w.Name)
			}
			more := append([]api.Checkup{daemon.Check(cmd.Context(), a.Setup, beside)}, daemon.CheckTriggers(served, err)...)
			more = append(more, daemon.CheckEvents(a.Setup, beside)...)
			out := doctor.Examine(cmd.Context(), a.Setup, clean, names, more...)
			err = answer(a, out, nil, a.ShowDoctor)
			if err == nil && !out.OK {
				return silent{errDifference}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&clean, "clean", false, "remove the private directories of agents' commands that are unused for 30 days")
	return cmd
}
