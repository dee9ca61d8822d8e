package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/engine/lang"
)

// firstWorkflow is what wf init writes: it runs without a key.
//
//go:embed first.yaml
var firstWorkflow []byte

// projectIgnore keeps the store out of version control, and the rest of .wf in it.
const projectIgnore = "*\n!.gitignore\n!config.yaml\n!schema.json\n"

func newInit(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a first workflow, and the schema for your editor",
		Long: `Make a project: a store in .wf, the JSON Schema of the language for editors, and a first workflow
that runs without a key. What is there already is left alone.`,
		Example: `  wf init
  wf run workflow.yaml`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return a.init(cmd, dir)
		},
	}
}

type initJSON struct {
	Schema  string   `json:"schema"`
	Store   string   `json:"store"`
	Written []string `json:"written"`
	Kept    []string `json:"kept"`
}

func (a *app) init(cmd *cobra.Command, dir string) error {
	project := filepath.Join(dir, projectDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	store, err := cas.Open(cmd.Context(), project, cas.Options{})
	if err != nil {
		return err
	}
	out := initJSON{Schema: "wf.init/v1", Store: store.Dir(), Written: []string{}, Kept: []string{}}
	if err := store.Close(); err != nil {
		return err
	}
	for _, f := range []struct {
		path    string
		content []byte
	}{
		{filepath.Join(project, ".gitignore"), []byte(projectIgnore)},
		{filepath.Join(project, "schema.json"), lang.JSONSchema()},
		{filepath.Join(dir, "workflow.yaml"), firstWorkflow},
	} {
		switch err := writeNew(f.path, f.content); {
		case err == nil:
			out.Written = append(out.Written, f.path)
		case errors.Is(err, fs.ErrExist):
			out.Kept = append(out.Kept, f.path)
		default:
			return fmt.Errorf("init: %w", err)
		}
	}
	if a.asJSON() {
		return a.answer(out)
	}
	p := paint{a.out.color}
	for _, path := range out.Written {
		fmt.Fprintf(a.out, "%s wrote %s\n", p.green("✓"), path)
	}
	for _, path := range out.Kept {
		fmt.Fprintf(a.out, "%s kept  %s\n", p.dim("="), path)
	}
	a.tellEarlier(cmd.Context(), dir, out.Store)
	next := "wf run workflow.yaml"
	if dir != "." {
		next = "cd " + dir + " && " + next
	}
	_, err = fmt.Fprintf(a.out, "  next   %s\n", next)
	return err
}

// writeNew writes a file that is not there yet; a file that is there is an error wrapping
// fs.ErrExist.
func writeNew(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}
