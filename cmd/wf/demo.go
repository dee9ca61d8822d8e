package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"wf/agentkit/sandbox"
	"wf/api"
	"wf/engine/lang"
	"wf/protocol"
	"wf/workflows"
)

func newDemo(a *app) *cobra.Command {
	var dir string
	var noCache bool
	cmd := &cobra.Command{
		Use:   "demo [DIR]",
		Short: "Watch a workflow repair a failing Go module, without a key",
		Long: `Write a small Go module with failing tests into a new directory and run a workflow that repairs it: a
test, an agent that fixes, the test again, the same agent again, a review. The model is a script; the
tools, the tests and everything that is recorded are real. It needs go, but no key, no server and no
network. A second demo performs nothing: it reuses the results of the first.`,
		Example: `  wf demo
  wf demo --dir ./split && cat split/workflows/fix-bug.yaml

  # the second demo reuses what the first one has performed; this one performs everything
  wf demo --no-cache`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if dir != "" {
					return usagef("name the directory once: %s, or --dir %s", args[0], dir)
				}
				dir = args[0]
			}
			return a.demo(cmd.Context(), dir, noCache)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "where to write the module: a new or empty directory (default: a temporary one)")
	cmd.Flags().BoolVar(&noCache, "no-cache", false, "perform everything, although an earlier demo has the results")
	return cmd
}

// demo writes the module, repairs it, and says what to look at. The store is the one that
// every other command finds from here, so that wf resume -1 goes on with a demo that was
// killed.
func (a *app) demo(ctx context.Context, dir string, noCache bool) error {
	if _, err := exec.LookPath("go"); err != nil {
		return protocol.ErrUsage.With("install Go from https://go.dev/dl, or see wf init", "wf demo tests a Go module, and there is no go in the PATH")
	}
	dir, err := demoDir(dir)
	if err != nil {
		return err
	}
	if err := workflows.WriteDemo(dir, lang.JSONSchema()); err != nil {
		return err
	}
	a.Progress("a Go module whose tests fail, in %s", dir)
	a.Ours = true
	if why := sandbox.Probe().Lacks(sandbox.Policy{}); why != "" {
		a.Progress("  commands cannot be confined here (%s): those of the demo run as you", why)
	}
	err = a.run(ctx, filepath.Join(dir, filepath.FromSlash(workflows.DemoWorkflow)), runFlags{dir: dir, noCache: noCache, Start: api.Start{Tags: []string{"demo"}}})
	if err != nil || a.AsJSON() {
		return err
	}
	_, err = fmt.Fprint(a.Out, `
  look     wf show -1 · wf messages -1:coder#2 · wf explain -1:test#2
  prove    wf verify -1 · wf replay -1 --check
  tamper   wf export -1 -o run.car
           printf X | dd of=run.car bs=1 seek=4000 conv=notrunc; wf verify run.car
  redo     wf fork -1:coder#2 --run · wf diff -2 -1
`)
	return err
}

// demoDir is a new directory, or an empty one that was named.
func demoDir(named string) (string, error) {
	if named == "" {
		dir, err := os.MkdirTemp("", "wf-demo-")
		if err != nil {
			return "", fmt.Errorf("demo: %w", err)
		}
		return dir, nil
	}
	dir, err := filepath.Abs(named)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil:
		return "", fmt.Errorf("demo: %w", err)
	case len(entries) > 0:
		return "", usagef("%s is not empty; wf demo wants a new directory", named)
	}
	return dir, nil
}
