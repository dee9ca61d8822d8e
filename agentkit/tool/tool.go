// Package tool holds what an agent can do besides talking: files and commands of the
// workspace.
//
// A tool list is part of the prompt and so of every cache key: it is sorted by name, in
// canonical JSON, and holds neither a path of this machine nor a date.
//
// # Confined
//
// Files are opened through os.Root of the workspace: no path and no symbolic link leads out of
// it, to .wf, or for writing to .git (see workspace.Find). Commands run in a sandbox, and are refused where the machine has none, unless the role
// turns it off; then a person is asked before each of them.
//
// # Not promised
//
// That a command can be undone. A tool that is neither ReadOnly nor Repeatable is never run
// twice for one call.
package tool

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"wf/agentkit/sandbox"
	"wf/protocol"
	"wf/roles"
)

// Policy says whether a call of a tool needs a person's word.
type Policy string

// The policies: run it, ask first, refuse.
const (
	Auto Policy = "auto"
	Ask  Policy = "ask"
	Deny Policy = "deny"
)

// Said is what a role's entry says of a tool.
func Said(entry protocol.NamedTemplate) Policy {
	return Policy(cmp.Or(entry.Value, strings.Trim(entry.JSON, `"`)))
}

// A Tool is something a model can call.
type Tool struct {
	Name        string
	Description string        // what the model reads; from the .md beside the .go
	Parameters  protocol.JSON // JSON Schema of the arguments
	ReadOnly    bool          // changes nothing, so that a cut-off call may be repeated
	Repeatable  bool          // a cut-off call may be repeated, since it finds what it did
	Policy      Policy        // where the role says nothing; "" is Auto, or Ask for commands outside of a sandbox
	Confined    bool          // runs commands, in the sandbox of the workspace
	Server      string        // that offers it; "" is none

	// Unasked reports whether a call may run without a person's word although Policy is Ask; nil
	// is no. It may wait, until ctx ends.
	Unasked func(ctx context.Context) bool

	// Show is what a person sees of a call before it runs, all of it: the command, or the lines that
	// would change. Secrets are hidden. nil, or "", shows the arguments.
	Show func(at Workspace, args json.RawMessage) string

	// Run acts. args is the raw JSON of the model, already known to be an object. Whatever
	// went wrong for the model to know is a Result with IsError; an error is for ctx alone.
	Run func(ctx context.Context, at Workspace, args json.RawMessage) (Result, error)
}

// Workspace is where tools act.
type Workspace struct {
	Dir  string // absolute
	Root string // what commands may write, absolute; "" is Dir, which lies in it
	At   string // where commands find Root, as Turn.At
	// Artifacts is a directory that may be read, by paths that begin with $WF_ARTIFACTS; "" is none.
	Artifacts string
	Private   string         // as Turn.Private
	Trust     protocol.Trust // of commands
	Sandbox   string         // sandbox.Off runs commands unconfined
	Network   bool           // lets commands use the network
	Hosts     []string       // endpoints that they reach without Network
	Environ   []string       // NAME=value pairs given to commands on top of the allow-list
	Grants    sandbox.Grants // of commands in the sandbox
	// TraceParent goes along with calls of other programs' tools, as Turn.TraceParent; commands have it in Environ.
	TraceParent string
	Clean       func(string) string // hides secrets; nil hides nothing

	// Watch is shown output as it comes, kind stdout or stderr; nil watches nothing. Redact
	// hides secrets in it, a new one for each stream; nil hides what has the shape of a key.
	Watch  func(kind, text string)
	Redact func() *roles.Redactor

	met      func(string) // of the policy of a command
	appeared func(*protocol.Appeared)
}

// root is what commands may write.
func (w Workspace) root() string { return cmp.Or(w.Root, w.Dir) }

// below is Dir as a path in the root.
func (w Workspace) below() (string, error) {
	dir, err := filepath.Rel(w.root(), w.Dir)
	if err != nil || !filepath.IsLocal(dir) {
		return "", fmt.Errorf("the directory %s lies outside of the workspace %s", w.Dir, w.root())
	}
	return dir, nil
}

func (w Workspace) clean(s string) string {
	if w.Clean != nil {
		s = w.Clean(s)
	}
	return s
}

// Result is what the model reads of a call.
type Result struct {
	Content  string
	IsError  bool
	Appeared *protocol.Appeared // what the call left on which other programs act; no model reads it
}

// Failed is an error for the model to know.
func Failed(format string, args ...any) Result {
	return Result{Content: "error: " + fmt.Sprintf(format, args...), IsError: true}
}

//go:embed *.md
var texts embed.FS

// Text is the description of a tool, from NAME.md of what is embedded beside it.
func Text(texts embed.FS, name string) string {
	b, err := texts.ReadFile(name + ".md")
	if err != nil {
		panic(err) // part of the binary
	}
	return strings.TrimSpace(string(b))
}

// reading completes a tool: its description is the text of its name, and run and show are given the arguments of a
// call, of which some are required. What does not fit is told the model, and shown by the arguments; show may be nil.
func reading[A any](t Tool, run func(context.Context, Workspace, A) (Result, error), show func(Workspace, A) string, required ...string) Tool {
	t.Description = Text(texts, t.Name)
	t.Run = func(ctx context.Context, at Workspace, raw json.RawMessage) (Result, error) {
		var args A
		if err := Decode(raw, &args, required...); err != nil {
			return Failed("%v", err), nil
		}
		return run(ctx, at, args)
	}
	if show != nil {
		t.Show = func(at Workspace, raw json.RawMessage) string {
			var args A
			if Decode(raw, &args, required...) != nil {
				return ""
			}
			return show(at, args)
		}
	}
	return t
}

// All lists the tools of this package, sorted by name.
func All() []Tool {
	return []Tool{editFile(), listFiles(), readFile(), search(), shell(), writeFile()}
}

// Named finds tools, in any order and with repetitions, and gives each once, sorted by name.
// An unknown name is an error that lists the known ones.
func Named(names []string, from []Tool) ([]Tool, error) {
	var out []Tool
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		i := slices.IndexFunc(from, func(t Tool) bool { return t.Name == name })
		if i < 0 {
			var known []string
			for _, t := range from {
				known = append(known, t.Name)
			}
			return nil, fmt.Errorf("no tool is named %q (there are %s)", name, strings.Join(known, ", "))
		}
		out = append(out, from[i])
	}
	return out, nil
}

// List is the canonical JSON of a tool list as it is sent and recorded, "" for no tools.
func List(tools []Tool) (string, error) {
	if len(tools) == 0 {
		return "", nil
	}
	list := make([]protocol.Tool, len(tools))
	for i, t := range tools {
		list[i] = protocol.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
	}
	protocol.Sort(list, func(a, b protocol.Tool) int { return strings.Compare(a.Name, b.Name) })
	b, err := protocol.CanonicalJSON(list)
	return string(b), err
}

// Decode reads the arguments of a call; an unknown or missing one is reported to the model.
func Decode(args json.RawMessage, into any, required ...string) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(args, &given); err != nil {
		return fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	for _, name := range required {
		if _, ok := given[name]; !ok {
			return fmt.Errorf("the argument %q is missing", name)
		}
	}
	dec := json.NewDecoder(strings.NewReader(string(args)))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if misfit := (*json.UnmarshalTypeError)(nil); errors.As(err, &misfit) {
		return fmt.Errorf("the arguments do not fit: %s holds %s, want %s", strings.TrimPrefix(misfit.Field, "."), protocol.Article(misfit.Value), wanted(misfit.Type.Kind()))
	}
	if err != nil {
		return fmt.Errorf("the arguments do not fit: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// wanted names what a field of a kind is read from, as models know it.
func wanted(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "an integer"
}
