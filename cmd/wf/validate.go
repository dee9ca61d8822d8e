package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"wf/agentkit/memory"
	"wf/agentkit/tool"
	"wf/engine/lang"
	"wf/files"
	"wf/protocol"
)

// maxSource is the largest definition that is read; a larger file is no workflow.
const maxSource = 10 << 20

// A definition is a workflow file as it was read.
type definition struct {
	path    string // as given
	source  []byte
	program *lang.Program // nil where a diagnostic is an error
	diags   []lang.Diagnostic
}

// readDefinition reads a workflow file; "-" is stdin. A file that cannot be read is an error
// wrapping protocol.ErrInvalid; what is wrong inside of it stands in diags.
func (a *app) readDefinition(path string) (definition, error) {
	if path == "-" {
		return a.readDefinitionBy(path, func(string) ([]byte, error) { return files.Bounded(a.in, maxSource) })
	}
	return a.readDefinitionBy(path, readSource)
}

// readDefinitionBy is readDefinition with another way to read the file.
func (a *app) readDefinitionBy(path string, read func(string) ([]byte, error)) (definition, error) {
	d, name := definition{path: path}, path
	if path == "-" {
		name = "stdin"
	}
	var err error
	if d.source, err = read(path); err != nil {
		return d, cannotRead(name, err)
	}
	a.loadDefinition(&d, name)
	if d.program == nil && elsewhere(name, name) {
		return d, fail(protocol.ErrInvalid, "wf validate "+realPath(name)+" tells what is wrong", "%s is a link out of the project, and no valid workflow; what it leads to is not shown", path)
	}
	return d, nil
}

// readSource reads a file that a person named; it may be a pipe.
func readSource(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := files.Bounded(f, maxSource)
	return b, errors.Join(err, f.Close())
}

// loadDefinition makes the program of a source.
func (a *app) loadDefinition(d *definition, name string) {
	var tools []string
	for _, t := range tool.All() {
		tools = append(tools, t.Name)
	}
	d.program, d.diags = lang.Load(d.source, lang.Options{
		File:  filepath.ToSlash(name),
		MCP:   a.serverNames(),
		Tools: tools, MemoryTools: memory.Names,
		Providers: a.providerNames(),
		Read:      func(sub string) ([]byte, error) { return files.ReadNamed(filepath.FromSlash(sub), maxSource) },
		Apart:     func(sub string) bool { return elsewhere(name, filepath.FromSlash(sub)) },
	})
}

// elsewhere reports whether a file lies outside of the project of a workflow, wherever links lead to it. A clone
// decides what its workflows and its links name, so that the text of such a file is not shown.
func elsewhere(workflow, file string) bool {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return false // a pipe, such as that of <(a command)
	}
	rel, err := filepath.Rel(projectOf(realPath(filepath.Dir(workflow))), realPath(file))
	return err != nil || !filepath.IsLocal(rel)
}

func cannotRead(name string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	hint := "check the path"
	if errors.Is(err, fs.ErrNotExist) {
		hint = "check the path; wf init writes a first workflow"
	}
	return fail(protocol.ErrInvalid, hint, "%s: %v", name, err)
}

// valid gives the program, or reports every error on stderr and returns one error for all.
func (a *app) valid(d definition) (*lang.Program, error) {
	if d.program != nil {
		return d.program, nil
	}
	lang.Render(a.err, d.source, d.diags, a.err.color)
	if inActions() {
		for _, diag := range d.diags {
			fmt.Fprintln(a.err, annotation(diag))
		}
	}
	return nil, fail(protocol.ErrInvalid, "correct what is named above; wf validate checks again", "%s is not a valid workflow; nothing ran", d.path)
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
		d, err := a.readDefinition(path)
		if err != nil {
			return err
		}
		file := validatedFile{File: path, OK: d.program != nil}
		if d.program != nil {
			block, err := d.program.Block()
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			file.Name, file.Definition = d.program.Workflow.Name, block.Link.String()
		}
		result.OK = result.OK && file.OK
		result.Files = append(result.Files, file)
		result.Diagnostics = append(result.Diagnostics, d.diags...)
		switch a.format {
		case "human":
			lang.Render(a.out, d.source, d.diags, a.out.color)
			if d.program != nil {
				a.validLine(d.program, file)
			}
		case "github":
			for _, diag := range d.diags {
				fmt.Fprintln(a.out, annotation(diag))
			}
		case "jsonl":
			for _, diag := range d.diags {
				if err := line(a.out, diag); err != nil {
					return err
				}
			}
		}
	}
	if a.asJSON() {
		if err := a.answer(result); err != nil {
			return err
		}
	}
	if !result.OK {
		return silent{protocol.ErrInvalid}
	}
	return nil
}

func (a *app) validLine(p *lang.Program, file validatedFile) {
	paint := paint{a.out.color}
	fmt.Fprintf(a.out, "%s %s  %s: %s, %s  def %s\n", paint.green("✓"), file.File,
		file.Name, plural(len(p.Workflow.Roles), "role"), plural(len(p.Workflow.Edges), "edge"), shortCID(file.Definition))
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
