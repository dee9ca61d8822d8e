package compose

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"wf/agentkit/memory"
	"wf/agentkit/tool"
	"wf/api"
	"wf/engine/lang"
	"wf/files"
	"wf/protocol"
)

// A Definition is a workflow file as it was read.
type Definition struct {
	Path    string // as given
	Source  []byte
	Program *lang.Program // nil where a diagnostic is an error
	Diags   []lang.Diagnostic
}

// readDefinition reads a workflow file; "-" is stdin. A file that cannot be read is an error
// wrapping protocol.ErrInvalid; what is wrong inside of it stands in diags.
func (u *Setup) Read(path string) (Definition, error) {
	if path == "-" {
		return u.readBy(path, func(string) ([]byte, error) { return files.Bounded(u.Stdin, protocol.WorkflowMax) })
	}
	return u.readBy(path, readSource)
}

// readDefinitionBy is readDefinition with another way to read the file.
func (u *Setup) readBy(path string, read func(string) ([]byte, error)) (Definition, error) {
	d, name := Definition{Path: path}, path
	if path == "-" {
		name = "stdin"
	}
	var err error
	if d.Source, err = read(path); err != nil {
		return d, cannotRead(name, err)
	}
	u.Load(&d, name)
	if d.Program == nil && elsewhere(name, name) {
		return d, protocol.ErrInvalid.With("wf validate "+protocol.ShellWord(files.Real(name))+" tells what is wrong", "%s is a link out of the project, and no valid workflow; what it leads to is not shown", path)
	}
	return d, nil
}

// readSource reads a file that a person named; it may be a pipe.
func readSource(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := files.Bounded(f, protocol.WorkflowMax)
	return b, errors.Join(err, f.Close())
}

// Load makes the program of a source; name is that of its file.
func (u *Setup) Load(d *Definition, name string) {
	u.load(d, name, func(sub string) ([]byte, error) {
		return files.ReadNamed(filepath.FromSlash(sub), protocol.WorkflowMax)
	},
		func(sub string) bool { return elsewhere(name, filepath.FromSlash(sub)) })
}

// load makes the program of a source, whose sub-workflows are read by read.
func (u *Setup) load(d *Definition, name string, read func(string) ([]byte, error), apart func(string) bool) {
	o := u.known()
	o.File, o.Read, o.Apart = filepath.ToSlash(name), read, apart
	d.Program, d.Diags = lang.Load(d.Source, o)
}

// known is what a definition can name here beside what is in it.
func (u *Setup) known() lang.Options {
	o := lang.Options{MemoryTools: memory.Names}
	for _, t := range tool.All() {
		o.Tools = append(o.Tools, t.Name)
	}
	if c, err := u.Config(); err == nil { // one that cannot be read names no server and no provider
		o.MCP, o.Providers = c.MCPNames(), slices.Collect(maps.Keys(c.Registry()))
	}
	return o
}

// Reload makes the program of a canonical definition with all that is checked of a file; sub gives the definitions of
// sub-workflows.
func (u *Setup) Reload(w *protocol.Workflow, sub lang.Subs) (d Definition, err error) {
	d.Program, d.Diags = lang.Reload(w, sub, u.known())
	return d.mixed("the definition of " + w.Name)
}

// Mix makes the program of a definition with some of the changes that lang.Differences found from it. Where it is not
// valid the error wraps protocol.ErrInvalid.
func (u *Setup) Mix(w *protocol.Workflow, some []lang.Change, sub lang.Subs) (d Definition, err error) {
	d.Program, d.Diags = lang.Apply(w, some, sub, u.known())
	return d.mixed("the mixture")
}

// mixed is a definition that has no file.
func (d Definition) mixed(what string) (Definition, error) {
	if d.Program == nil {
		return d, protocol.ErrInvalid.With("", "%s does not lint: %s", what, d.fault().Message)
	}
	d.Source = d.Program.Source()
	return d, nil
}

// Whole is a definition that was read, with the sub-workflows that it names, as it is given to another service.
func (u *Setup) Whole(d Definition) (*api.Definition, error) {
	file := d.Path
	if file == "-" {
		file = "stdin.yaml"
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	w := &api.Definition{File: file, Source: string(d.Source), Files: map[string]string{}}
	u.load(&d, file, func(sub string) ([]byte, error) {
		text, err := files.ReadNamed(filepath.FromSlash(sub), protocol.WorkflowMax)
		w.Files[sub] = string(text)
		return text, err
	}, nil)
	return w, nil
}

// Given makes the program of a definition that holds all that it names: no file is read. One that is not valid is an
// error wrapping protocol.ErrInvalid that has the first fault.
func (u *Setup) Given(w *api.Definition) (Definition, error) {
	d := Definition{Path: w.File, Source: []byte(w.Source)}
	if !filepath.IsAbs(w.File) || len(w.Source) > protocol.WorkflowMax {
		return d, protocol.ErrInvalid.With("", "the definition %.200q: want an absolute path, and at most %d bytes", w.File, protocol.WorkflowMax)
	}
	u.load(&d, w.File, func(sub string) ([]byte, error) {
		text, ok := w.Files[sub]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(text), nil
	}, nil)
	if d.Program != nil {
		return d, nil
	}
	why := cmp.Or(d.fault().Message, "it is no workflow")
	return d, protocol.ErrInvalid.With("wf validate "+protocol.ShellWord(w.File)+" tells everything that is wrong", "%s is not a valid workflow: %s", w.File, why)
}

// fault is the first error of a definition, zero where there is none.
func (d Definition) fault() lang.Diagnostic {
	for _, x := range d.Diags {
		if x.Severity == lang.SeverityError {
			return x
		}
	}
	return lang.Diagnostic{}
}

// elsewhere reports whether a file lies outside of the project of a workflow, wherever links lead to it. A clone
// decides what its workflows and its links name, so that the text of such a file is not shown.
func elsewhere(workflow, file string) bool {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return false // a pipe, such as that of <(a command)
	}
	rel, err := filepath.Rel(ProjectOf(files.Real(filepath.Dir(workflow))), files.Real(file))
	return err != nil || !filepath.IsLocal(rel)
}

func cannotRead(name string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	hint := "check the path"
	if errors.Is(err, fs.ErrNotExist) {
		hint = "check the path; wf init writes a first workflow"
	}
	return protocol.ErrInvalid.With(hint, "%s: %v", name, err)
}

// ProjectOf is the git work tree in which a directory lies, else the directory.
func ProjectOf(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for up := dir; ; up = filepath.Dir(up) {
		if files.Exists(filepath.Join(up, ".git")) {
			return up
		}
		if up == filepath.Dir(up) {
			return dir
		}
	}
}
