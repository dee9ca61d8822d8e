package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/agentkit/config"
	"wf/engine/lang"
	"wf/files"
	"wf/hub/server"
	"wf/protocol"
	"wf/protocol/lazy"
)

// A shelf is the directories whose workflows can be started through the API.
type shelf struct {
	a    *app
	dirs []string // absolute
}

// found is a workflow file of a shelf.
type found struct {
	path    string // absolute
	name    string
	source  []byte
	program *lang.Program // nil where problem is set
	problem string
	cid     protocol.Link  // of the definition, where program is set
	waits   []config.Grant // powers that it waits for, until a person trusts it
}

// isWorkflow tells a workflow from other YAML: a key wf at the left edge.
var isWorkflow = lazy.Regexp(`(?m)^["']?wf["']?\s*:`)

// newShelf serves the directories named, else those of the project: where its .wf lies, the
// workflows beside it and those in it.
func (a *app) newShelf(dirs []string, store string) (shelf, error) {
	s := shelf{a: a}
	named := len(dirs) > 0
	if !named {
		project := "."
		if filepath.Base(store) == projectDir {
			project = filepath.Dir(store)
		}
		dirs = []string{project, filepath.Join(project, "workflows"), filepath.Join(project, projectDir, "workflows")}
	}
	for _, d := range dirs {
		abs, err := filepath.Abs(d)
		if err != nil {
			return s, fmt.Errorf("workflows: %w", err)
		}
		info, err := os.Stat(abs)
		switch {
		case err == nil && info.IsDir():
			s.dirs = append(s.dirs, abs)
		case named:
			return s, usagef("--workflows %s is no directory", d)
		}
	}
	return s, nil
}

// list reads the workflows, by name; one that is not valid is listed with what is wrong.
func (s shelf) list() ([]found, error) {
	var out []found
	for _, dir := range s.dirs {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return nil, fmt.Errorf("workflows: %w", err)
		}
		for _, e := range entries {
			ext := filepath.Ext(e.Name())
			if (ext != ".yaml" && ext != ".yml") || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			if f, ok := s.read(filepath.Join(dir, e.Name())); ok {
				out = append(out, f)
			}
		}
	}
	slices.SortFunc(out, func(a, b found) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.path, b.path)) })
	return out, nil
}

// read reads one file; false is one that is no workflow at all.
func (s shelf) read(path string) (found, bool) {
	f := found{path: path, name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	d, err := s.a.readDefinitionBy(path, inDirectory)
	if err != nil {
		f.problem = err.Error()
		return f, true
	}
	if !isWorkflow().Match(d.source) {
		return f, false
	}
	f.source, f.program = d.source, d.program
	if d.program != nil {
		f.name = d.program.Workflow.Name
		if err := f.weigh(s.a); err != nil {
			f.program, f.problem = nil, err.Error()
		}
		return f, true
	}
	for _, diag := range d.diags {
		if diag.Severity == lang.SeverityError {
			f.problem = fmt.Sprintf("line %d: %s", diag.Range.Start.Line, diag.Message)
			break
		}
	}
	return f, true
}

// inDirectory reads a file that others may have put into a directory that is served: links stay within it.
func inDirectory(path string) ([]byte, error) {
	return files.ReadIn(filepath.Dir(path), filepath.Base(path), maxSource)
}

// weigh finds what a workflow waits for.
func (f *found) weigh(a *app) error {
	def, err := f.program.Block()
	if err != nil {
		return err
	}
	f.cid = def.Link
	f.waits, err = a.wanted(f.program, f.path, f.source)
	return err
}

// entry is a workflow as the API lists it.
func (f found) entry() server.Workflow {
	out := server.Workflow{Name: f.name, File: f.path, Inputs: json.RawMessage(`{"type":"object"}`), Problem: f.problem}
	if f.program == nil {
		return out
	}
	w := f.program.Workflow
	out.Definition = f.cid.String()
	if err := untrusted(f.waits, config.Serve, config.Unconfined); err != nil {
		out.Waits, out.Problem = true, "it waits for trust: "+protocol.HintOf(err)
	}
	out.Description, out.Inputs = w.Description, inputSchema(w.Inputs)
	if w.Schedule != nil {
		out.Schedule = &w.Schedule.Cron
	}
	return out
}

// inputSchema is the JSON Schema of the inputs of a workflow.
func inputSchema(inputs map[string]protocol.Input) json.RawMessage {
	type property struct {
		Type        string          `json:"type,omitempty"`
		Description string          `json:"description,omitempty"`
		Default     json.RawMessage `json:"default,omitempty"`
		Enum        json.RawMessage `json:"enum,omitempty"`
	}
	s := struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
		Additional bool                `json:"additionalProperties"`
	}{"object", map[string]property{}, []string{}, false}
	for _, name := range sortedKeys(inputs) {
		in := inputs[name]
		p := property{Type: in.Type, Description: in.Description}
		if in.Default != "" {
			p.Default = json.RawMessage(in.Default)
		}
		if in.Enum != "" {
			p.Enum = json.RawMessage(in.Enum)
		}
		s.Properties[name] = p
		if in.Required {
			s.Required = append(s.Required, name)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // defaults and enums of a definition are JSON
	}
	return b.Bytes()
}
