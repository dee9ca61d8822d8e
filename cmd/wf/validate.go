package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wf/cmd/internal/render"
	"wf/engine/lang"
	"wf/protocol"
	"wf/service/compose"
)

// valid gives the program, or reports every error on stderr and returns one error for all.
func (a *app) valid(d compose.Definition) (*lang.Program, error) {
	if d.Program != nil {
		return d.Program, nil
	}
	lang.Render(a.Err, d.Source, d.Diags, a.Err.Color)
	if render.InActions() {
		for _, diag := range d.Diags {
			fmt.Fprintln(a.Err, annotation(diag))
		}
	}
	return nil, protocol.ErrInvalid.With("correct what is named above; wf validate checks again", "%s is not a valid workflow; nothing ran", d.Path)
}

type validateJSON struct {
	Schema      string            `json:"schema"`
	OK          bool              `json:"ok"`
	Files       []validatedFile   `json:"files"`
	Diagnostics []lang.Diagnostic `json:"diagnostics"`
}

type validatedFile struct {
	File       string `json:"file"`
	OK         bool   `json:"ok"`
	Name       string `json:"name,omitempty"`
	Definition string `json:"definition,omitempty"` // CID of the canonical block
}

func newValidate(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check workflows, and tell everything that is wrong at once",
		Long: `Check workflows without running them: names, reachability, bounds, routing, expressions, schemas.
Every error comes with its place, the reason and a repair. Exit 3 when there is one.`,
		Example: `  wf validate workflow.yaml
  wf validate workflows/*.yaml -o json

  # annotations in a pull request
  wf validate workflows/*.yaml -o github`,
		Args:        takes(1, -1, "a workflow file"),
		Annotations: map[string]string{formatsKey: "human json jsonl github"},
		RunE:        func(_ *cobra.Command, args []string) error { return a.validate(args) },
	}
}

func (a *app) validate(paths []string) error {
	result := validateJSON{Schema: "wf.validate/v1", OK: true, Files: []validatedFile{}, Diagnostics: []lang.Diagnostic{}}
	for _, path := range paths {
		d, err := a.Read(path)
		if err != nil {
			return err
		}
		file := validatedFile{File: path, OK: d.Program != nil}
		if d.Program != nil {
			block, err := d.Program.Block()
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			file.Name, file.Definition = d.Program.Workflow.Name, block.Link.String()
		}
		result.OK = result.OK && file.OK
		result.Files = append(result.Files, file)
		result.Diagnostics = append(result.Diagnostics, d.Diags...)
		switch a.Format {
		case "human":
			lang.Render(a.Out, d.Source, d.Diags, a.Out.Color)
			if p := d.Program; p != nil {
				fmt.Fprintf(a.Out, "%s %s  %s: %s, %s  def %s\n", a.Out.Green("✓"), file.File,
					file.Name, protocol.Plural(len(p.Workflow.Roles), "role"), protocol.Plural(len(p.Workflow.Edges), "edge"), render.ShortCID(file.Definition))
			}
		case "github":
			for _, diag := range d.Diags {
				fmt.Fprintln(a.Out, annotation(diag))
			}
		case "jsonl":
			for _, diag := range d.Diags {
				if err := render.WriteLine(a.Out, diag); err != nil {
					return err
				}
			}
		}
	}
	if a.AsJSON() {
		if err := a.Answer(result); err != nil {
			return err
		}
	}
	if !result.OK {
		return silent{protocol.ErrInvalid}
	}
	return nil
}

// annotation is a workflow command of GitHub Actions.
func annotation(d lang.Diagnostic) string {
	escape := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ",", "%2C", ":", "%3A")
	text := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	message := d.Message
	if d.Hint != "" {
		message += "\n" + d.Hint
	}
	return fmt.Sprintf("::%s file=%s,line=%d,col=%d,endLine=%d,endColumn=%d,title=%s::%s", d.Severity,
		escape.Replace(d.File), d.Range.Start.Line, d.Range.Start.Col, d.Range.End.Line, d.Range.End.Col,
		escape.Replace(d.Code), text.Replace(message))
}
