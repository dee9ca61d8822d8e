package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"

	"wf/protocol"
)

// demoFiles is the module to repair, its workflow and the scripted agent.
//
//go:embed demo.txtar
var demoFiles []byte

func newDemo(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "demo [DIR]",
		Short: "Watch a workflow repair a failing Go module, without a key",
		Long: `Write a small Go module with failing tests into a new directory and run a workflow that repairs it: a
test, an agent that fixes, the test again, the agent again. The agent is scripted; its tools, the tests
and everything that is recorded are real. It needs go, but no key, no server and no network.`,
		Example: `  wf demo
  wf demo ./words && cat words/workflow.yaml`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.demo(cmd.Context(), args) },
	}
}

func (a *app) demo(ctx context.Context, args []string) error {
	if _, err := exec.LookPath("go"); err != nil {
		return fail(protocol.ErrUsage, "install Go from https://go.dev/dl, or see wf init", "wf demo tests a Go module, and there is no go in the PATH")
	}
	dir, err := demoDir(args)
	if err != nil {
		return err
	}
	for _, f := range txtar.Parse(demoFiles).Files {
		if err := writeNew(filepath.Join(dir, f.Name), f.Data); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	}
	a.progress("a Go module with two bugs, in %s", dir)
	err = a.run(ctx, filepath.Join(dir, "workflow.yaml"), runFlags{dir: dir})
	if err != nil || a.asJSON() {
		return err
	}
	_, err = fmt.Fprint(a.out, `
  look    wf show -1 · wf messages -1:coder#2 · wf explain -1:coder#2
  prove   wf verify -1 · wf replay -1 --check
  change  wf fork -1:coder#2 --run · wf diff -2 -1
`)
	return err
}

// demoDir is a new directory, or an empty one that was named.
func demoDir(args []string) (string, error) {
	if len(args) == 0 {
		dir, err := os.MkdirTemp("", "wf-demo-")
		if err != nil {
			return "", fmt.Errorf("demo: %w", err)
		}
		return dir, nil
	}
	dir, err := filepath.Abs(args[0])
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
		return "", usagef("%s is not empty; wf demo wants a new directory", args[0])
	}
	return dir, nil
}
