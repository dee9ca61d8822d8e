package main

import (
	"context"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/complete"
	"wf/protocol"
	"wf/store"
	"wf/workflows"
)

func newCompletion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Write a completion script for your shell",
		Example: `  # bash, for this session
  source <(wf completion bash)

  # zsh and fish, for good
  wf completion zsh > "${fpath[1]}/_wf"
  wf completion fish > ~/.config/fish/completions/wf.fish`,
		Args:        takes(1, 1, "a shell: bash, zsh, fish or powershell"),
		ValidArgs:   []string{"bash", "zsh", "fish", "powershell"},
		Annotations: map[string]string{formatsKey: "human"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.Out)
			}
			return usagef("no completion for %q; there is one for bash, zsh, fish and powershell", args[0])
		},
	}
}

// offer makes every command complete its arguments and flags.
func (a *app) offer(root *cobra.Command) {
	source := &complete.Source{
		Runs: func(ctx context.Context, use func(api.Runs) error) error {
			return a.WithStore(ctx, func(s store.Store) error { return use(a.atStore(s)) })
		},
		Workflow: func(file string) (protocol.Workflow, bool) {
			if file == "-" {
				return protocol.Workflow{}, false // nothing was written on stdin yet
			}
			d, err := a.Read(file)
			if err != nil || d.Program == nil {
				return protocol.Workflow{}, false
			}
			return *d.Program.Workflow, true
		},
		Scopes:  a.MemoryScopes,
		Formats: formatsOf, Written: written,
	}
	for _, e := range workflows.Examples {
		source.Examples = append(source.Examples, e.Name+"\t"+e.About)
	}
	source.Offer(root)
}
