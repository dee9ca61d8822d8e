package compose

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"wf/agentkit/config"
	"wf/api"
	"wf/files"
	"wf/protocol"
	"wf/roles"
)

// A Catalog is the directories whose workflows can be started through the API.
type Catalog struct {
	u    *Setup
	Dirs []string // absolute
}

// Found is a workflow file of a Catalog.
type Found struct {
	Definition // its path absolute, its program nil where Problem is set
	Name       string
	Problem    string
	CID        protocol.Link  // of the definition, where program is set
	Waits      []config.Grant // powers that it waits for, until a person trusts it
	Twin       string         // another file of the catalog whose workflow has the same name
}

// NewCatalog serves the directories named, else those of the project: where its .wf lies, the
// workflows beside it and those in it.
func (u *Setup) NewCatalog(dirs []string, store string) (Catalog, error) {
	s := Catalog{u: u}
	named := len(dirs) > 0
	if !named {
		project := "."
		if filepath.Base(store) == ProjectDir {
			project = filepath.Dir(store)
		}
		dirs = []string{project, filepath.Join(project, "workflows"), filepath.Join(project, ProjectDir, "workflows")}
	}
	for _, d := range dirs {
		abs, err := filepath.Abs(d)
		if err != nil {
			return s, fmt.Errorf("workflows: %w", err)
		}
		info, err := os.Stat(abs)
		switch {
		case err == nil && info.IsDir():
			s.Dirs = append(s.Dirs, abs)
		case named:
			return s, protocol.ErrUsage.With("", "--workflows %s is no directory", d)
		}
	}
	return s, nil
}

// List reads the workflows, by name; one that is not valid is listed with what is wrong.
func (s Catalog) List() ([]Found, error) {
	var out []Found
	for _, dir := range s.Dirs {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return nil, fmt.Errorf("workflows: %w", err)
		}
		for _, e := range entries {
			if !protocol.IsWorkflowName(e.Name()) {
				continue
			}
			if f, ok := s.read(filepath.Join(dir, e.Name())); ok {
				out = append(out, f)
			}
		}
	}
	protocol.Sort(out, func(a, b Found) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Path, b.Path)) })
	for i := range out[min(1, len(out)):] {
		if a, b := &out[i], &out[i+1]; a.Name == b.Name {
			a.Twin, b.Twin = b.Path, a.Path
		}
	}
	return out, nil
}

// Find is the workflow of a name or a path, with @CID of that definition alone. Only what is served can be started.
func (s Catalog) Find(workflow string) (Found, error) {
	all, err := s.List()
	if err != nil {
		return Found{}, err
	}
	name, definition := api.Unpinned(workflow)
	var fits, others []Found
	for _, f := range all {
		switch {
		case f.Path == workflow || f.Name == workflow:
			name, definition = workflow, ""
			fits = append(fits, f)
		case f.Path != name && f.Name != name:
		case f.Program != nil && f.CID.String() == definition:
			fits = append(fits, f)
		default:
			others = append(others, f)
		}
	}
	switch {
	case definition != "" && len(fits) > 1:
		return fits[0], nil // they are the same
	case len(fits) == 0 && len(others) > 0:
		return Found{}, protocol.ErrNotFound.With("GET /v1/workflows lists them", "the workflow %s that is served has the definition %s, not %s", name, orInvalid(others[0]), definition)
	case len(fits) == 0:
		return Found{}, protocol.ErrNotFound.With("GET /v1/workflows lists them; wf serve --workflows DIR adds more", "no workflow %q is served", name)
	case len(fits) > 1:
		var paths []string
		for _, f := range fits {
			paths = append(paths, f.Path)
		}
		slices.Sort(paths)
		return Found{}, protocol.ErrAmbiguous.With("name the file", "%d workflows are called %q: %s", len(fits), name, strings.Join(paths, ", "))
	case fits[0].Problem != "":
		return Found{}, protocol.ErrInvalid.With("wf validate "+protocol.ShellWord(fits[0].Path), "%s is not a valid workflow: %s", fits[0].Path, fits[0].Problem)
	}
	return fits[0], nil
}

// orInvalid names the definition of a workflow.
func orInvalid(f Found) string {
	if f.Program == nil {
		return "of an invalid file"
	}
	return f.CID.String()
}

// Again reads the file of a workflow of the catalog again. One that has not changed is not compiled again; what it waits for is looked at
// anew.
func (s Catalog) Again(f Found) (Found, error) {
	if f.Program != nil && len(f.Program.Children) == 0 {
		if source, err := inDirectory(f.Path); err == nil && bytes.Equal(source, f.Source) {
			return f, f.weigh(s.u)
		}
	}
	now, ok := s.read(f.Path)
	switch {
	case !ok:
		return now, protocol.ErrNotFound.With("", "%s is no workflow any more", f.Path)
	case now.Problem != "":
		return now, protocol.ErrInvalid.With("wf validate "+protocol.ShellWord(f.Path), "%s is not a valid workflow: %s", f.Path, now.Problem)
	}
	return now, nil
}

// Read reads one file; false is one that is no workflow at all.
func (s Catalog) read(path string) (Found, bool) {
	f := Found{Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	var err error
	if f.Definition, err = s.u.readBy(path, inDirectory); err == nil {
		if !protocol.IsWorkflow(f.Source) {
			return f, false
		}
		if f.Program != nil {
			f.Name = f.Program.Workflow.Name
			err = f.weigh(s.u)
		} else if x := f.fault(); x.Message != "" {
			f.Problem = fmt.Sprintf("line %d: %s", x.Range.Start.Line, x.Message)
		}
	}
	if err != nil {
		f.Definition, f.Problem = Definition{Path: path}, err.Error()
	}
	return f, true
}

// inDirectory reads a file that others may have put into a directory that is served: links stay within it.
func inDirectory(path string) ([]byte, error) {
	return files.ReadIn(filepath.Dir(path), filepath.Base(path), protocol.WorkflowMax)
}

// weigh finds what a workflow waits for.
func (f *Found) weigh(u *Setup) error {
	def, err := f.Program.Block()
	if err != nil {
		return err
	}
	f.CID = def.Link
	f.Waits, err = u.Wanted(f.Program, Origin{File: f.Path, Source: f.Source})
	return err
}

// Served is nil if a client may start the workflow, else why not yet: it waits for trust.
func (f Found) Served() error {
	return Untrusted(f.Waits, config.Serve, config.Remember, config.Unconfined)
}

// Scheduled is Served for the clock.
func (f Found) Scheduled() error {
	return Untrusted(f.Waits, config.Serve, config.Schedule, config.Remember, config.Unconfined)
}

// Hooked is Served for events of other services.
func (f Found) Hooked() error {
	return Untrusted(f.Waits, config.Serve, config.Webhook, config.Remember, config.Unconfined)
}

// hookSecret is how many bytes the secret of a webhook has at least.
const hookSecret = 16

// HookSecrets are the values of the secrets of its webhook that are set, and long enough not to be guessed.
func (f Found) HookSecrets() (out []string) {
	for _, name := range f.Program.Workflow.Webhook.Secrets {
		if value := strings.TrimRight(os.Getenv(name), "\r\n"); len(value) >= hookSecret {
			out = append(out, value)
		}
	}
	return out
}

// A Trigger starts a workflow without a person: its schedule or its webhook.
type Trigger struct {
	Kind    string // protocol.TriggerSchedule or TriggerWebhook
	Problem string // what keeps it from being served; "" is nothing
	Fix     string
}

// text is the problem with what to do.
func (t Trigger) text() string { return t.Problem + ": " + t.Fix }

// Triggers are those of a workflow, as far as it has them.
func (f Found) Triggers() (out []Trigger) {
	if f.Program == nil {
		return nil
	}
	add := func(kind string, untrusted error) *Trigger {
		t := Trigger{Kind: kind}
		if untrusted != nil {
			t.Problem, t.Fix = "it waits for trust", protocol.HintOf(untrusted)
		}
		out = append(out, t)
		return &out[len(out)-1]
	}
	if f.Program.Workflow.Schedule != nil {
		add(protocol.TriggerSchedule, f.Scheduled())
	}
	if h := f.Program.Workflow.Webhook; h != nil {
		t := add(protocol.TriggerWebhook, f.Hooked())
		switch {
		case t.Problem != "":
		case f.Twin != "":
			t.Problem, t.Fix = "another workflow has the same name", "give "+f.Path+" or "+f.Twin+" another one"
		case len(f.HookSecrets()) == 0:
			t.Problem = "its secret is not set in the environment of wf serve, or has less than 16 bytes"
			t.Fix = "set " + strings.Join(h.Secrets, " or ") + " there, and start wf serve again"
		}
	}
	return out
}

// Hide takes the secrets that the workflow declares out of a text for the log.
func (f Found) Hide(text string) string {
	return roles.NewRedactor(roles.Secrets(os.Environ(), f.Program.Workflow.Secrets)).String(text)
}

// Entry is a workflow as the API lists it.
func (f Found) Entry() api.Workflow {
	out := api.Workflow{Name: f.Name, File: f.Path, Inputs: json.RawMessage(`{"type":"object"}`), Problem: f.Problem}
	if f.Program == nil {
		return out
	}
	w := f.Program.Workflow
	out.Definition = f.CID.String()
	if err := f.Served(); err != nil {
		out.Waits, out.Problem = true, "it waits for trust: "+protocol.HintOf(err)
	}
	out.Description, out.Inputs = w.Description, inputSchema(w.Inputs)
	if w.Schedule != nil {
		out.Schedule, out.Timezone, out.Overlap, out.CatchUp = &w.Schedule.Cron, w.Schedule.Timezone, w.Schedule.Overlap, w.Schedule.CatchUp
		if next, err := w.Schedule.Next(time.Now()); err == nil && !next.IsZero() && f.Scheduled() == nil {
			out.Next = new(next.UTC().Format(time.RFC3339))
		}
	}
	if w.Webhook != nil {
		out.Webhook = protocol.WebhookPath + w.Name
	}
	for _, t := range f.Triggers() {
		switch {
		case t.Problem == "" || out.Waits: // that it waits is said
		case t.Kind == protocol.TriggerSchedule:
			out.ScheduleProblem = t.text()
		default:
			out.WebhookProblem = t.text()
		}
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
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		in := inputs[name]
		s.Properties[name] = property{in.Type, in.Description, json.RawMessage(in.Default), json.RawMessage(in.Enum)}
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
