package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/cmd/internal/render"
	"wf/engine/lang"
	"wf/protocol"
	"wf/service/compose"
	"wf/workflows"
)

// firstWorkflow is what wf init writes: it runs without a key.
//
//go:embed first.yaml
var firstWorkflow []byte

// projectIgnore keeps the store out of version control, and the rest of .wf in it.
const projectIgnore = "*\n!.gitignore\n!config.yaml\n!schema.json\n"

func newInit(a *app) *cobra.Command {
	var example string
	var list bool
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a first workflow or an example, and the schema for your editor",
		Long: `Make a project: a store in .wf, the JSON Schema of the language for editors, and a first workflow
that runs without a key. --example writes one of the examples in its place, --list names them. What is
there already is left alone.`,
		Example: `  wf init
  wf run workflow.yaml

  wf init --list
  wf init --example gate && wf run gate.yaml -i topic="the new release"`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return a.listExamples()
			}
			files := []workflows.File{{Name: "workflow.yaml", Content: firstWorkflow}}
			if example != "" {
				var err error
				if files, err = exampleFiles(example); err != nil {
					return err
				}
			}
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return a.init(cmd, dir, files)
		},
	}
	cmd.Flags().StringVar(&example, "example", "", "write this example, see --list")
	cmd.Flags().BoolVar(&list, "list", false, "list the examples, write nothing")
	return cmd
}

func exampleFiles(name string) ([]workflows.File, error) {
	var names []string
	for _, e := range workflows.Examples {
		if e.Name == name {
			return e.Load("./" + compose.ProjectDir + "/schema.json")
		}
		names = append(names, e.Name)
	}
	return nil, protocol.ErrUsage.With("wf init --list tells what each shows", "--example %s: there are %s", name, strings.Join(names, ", "))
}

func (a *app) listExamples() error {
	if a.AsJSON() {
		items := []map[string]string{}
		for _, e := range workflows.Examples {
			items = append(items, map[string]string{"name": e.Name, "about": e.About})
		}
		return a.Answer(map[string]any{"schema": "wf.examples/v1", "items": items})
	}
	var rows [][]string
	for _, e := range workflows.Examples {
		rows = append(rows, []string{a.Out.Bold(e.Name), e.About})
	}
	if err := render.Table(a.Out, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "\n  write  wf init --example NAME\n  watch  wf demo\n")
	return err
}

type initJSON struct {
	Schema  string   `json:"schema"`
	Store   string   `json:"store"`
	Written []string `json:"written"`
	Kept    []string `json:"kept"`
}

func (a *app) init(cmd *cobra.Command, dir string, files []workflows.File) error {
	project := filepath.Join(dir, compose.ProjectDir)
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
	workflow := files[0].Name
	for _, f := range append([]workflows.File{
		{Name: compose.ProjectDir + "/.gitignore", Content: []byte(projectIgnore)},
		{Name: compose.ProjectDir + "/schema.json", Content: lang.JSONSchema()},
	}, files...) {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		switch err := workflows.WriteNew(path, f.Content); {
		case err == nil:
			out.Written = append(out.Written, path)
		case errors.Is(err, fs.ErrExist):
			out.Kept = append(out.Kept, path)
		default:
			return fmt.Errorf("init: %w", err)
		}
	}
	if a.AsJSON() {
		return a.Answer(out)
	}
	for _, path := range out.Written {
		fmt.Fprintf(a.Out, "%s wrote %s\n", a.Out.Green("✓"), path)
	}
	for _, path := range out.Kept {
		fmt.Fprintf(a.Out, "%s kept  %s\n", a.Out.Dim("="), path)
	}
	a.tellEarlier(cmd.Context(), dir, out.Store)
	next := protocol.ShellCommand("wf", "run", workflow)
	if dir != "." {
		next = "cd " + protocol.ShellWord(dir) + " && " + next
	}
	_, err = fmt.Fprintf(a.Out, "  next   %s\n", next)
	return err
}
