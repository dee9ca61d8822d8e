package roles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/protocol"
)

// A Reuser is a Performer that says what its results follow from, so that one can be reused.
type Reuser interface {
	// Follows tells of a turn what its result follows from, besides the role and the files of the workspace. scratch is an
	// empty directory for the commands of the toolchain, "" where there are none. An error wrapping ErrNotReusable says why
	// no result of it may be reused; others that it could not be found out.
	Follows(ctx context.Context, turn protocol.Turn, scratch string) (Follows, error)
}

// Follows is what a result follows from.
type Follows struct {
	Parts   []protocol.MemoPart // of the key, behind those of the files
	Environ []string            // NAME=value: what a command inherits
	Sees    Sight               // of the workspace
	// Ear hears what a performance emits; nil where that forbids nothing.
	Ear Ear
}

// Sight is what a visit whose result may be reused can see of the workspace.
type Sight int

// A visit sees the files that its role names as inputs, or all of them; nothing; or all of them and also directories without
// files, and which names lie where that belong to git and wf.
const (
	SeesInputs Sight = iota
	SeesNothing
	SeesEverything
)

// An Ear listens to a performance. Its methods are called one at a time.
type Ear interface {
	// Hear is called with each event, in order; what it gives says why the result is not kept for others, "" for nothing.
	Hear(data protocol.Data) (why string)
	// Wrote reports whether the performance can have changed a file, by its path in the workspace.
	Wrote(path string) bool
}

// ErrNotReusable says that a result of a visit may not be reused.
var ErrNotReusable = errors.New("its result cannot be reused")

// NotReusable is an error that wraps ErrNotReusable.
func NotReusable(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrNotReusable)
}

// unseen are variables that every command has and that no result may follow from.
var unseen = []string{"TERM", "TMPDIR"}

// placed are variables that name places of the user, in whose stead a confined command has places of its own.
var placed = []string{"HOME", "GOCACHE", "XDG_CACHE_HOME", "PIP_CACHE_DIR", "npm_config_cache"}

// Follows tells it of a command: walls that hide files, the environment, the tools, and the turn without what names the
// run.
func (r *Run) Follows(ctx context.Context, turn protocol.Turn, scratch string) (Follows, error) {
	var parts []protocol.MemoPart
	part := func(name string, value []byte) { parts = append(parts, protocol.NewMemoPart(name, value)) }
	spec := turn.Role.Caching
	for name, value := range turn.Env {
		for _, secret := range turn.Secrets {
			if strings.Contains(value, protocol.SecretRef(secret)) {
				return Follows{}, NotReusable("env.%s holds a secret", name)
			}
		}
	}
	sees := fmt.Sprintf("confined=%t", turn.Confined)
	if spec.Whole {
		sees += "\nin a copy" // results of commands that worked in the workspace may hold what others changed there
	}
	if !spec.Whole {
		hiding, ok := r.Walls.(Hiding)
		if !ok {
			return Follows{}, NotReusable("nothing here hides files from commands")
		}
		besides, err := hiding.Hides()
		if err != nil {
			return Follows{}, NotReusable("%v", err)
		}
		sees += "\n" + besides
	}
	part("sandbox", []byte(sees))
	environ := r.reusable(turn)
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		part("env "+name, []byte(value))
	}
	if lending, ok := r.Walls.(Lending); ok && turn.Confined {
		c := Command{Env: environ}
		for name, value := range turn.Env {
			c.Env = append(slices.Clip(c.Env), name+"="+value)
		}
		if spec.Whole {
			c.Workspace = turn.Workspace // what is copied has no settings in it that wf reads
		}
		lent, err := lending.Lends(c)
		if err != nil {
			return Follows{}, NotReusable("%v", err)
		}
		parts = append(parts, lent...)
	}
	for i, line := range spec.Toolchain {
		out, err := r.tells(ctx, turn, line, filepath.Join(scratch, fmt.Sprint(i)), environ)
		if err != nil {
			return Follows{}, err
		}
		part("toolchain "+line, out)
	}
	if err := r.turnParts(turn, part); err != nil {
		return Follows{}, err
	}
	return Follows{Parts: parts, Environ: environ}, nil
}

// reusable is what a command inherits whose result may be reused, sorted.
func (r *Run) reusable(turn protocol.Turn) []string {
	environ, system := r.Environ, r.System
	if environ == nil {
		environ = os.Environ()
	}
	if system == nil {
		system = []string{"PATH", "HOME", "LANG", "TZ"}
	}
	env := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		left := slices.Contains(unseen, name) || turn.Confined && slices.Contains(placed, name)
		if slices.Contains(turn.Role.Caching.Env, name) || slices.Contains(system, name) && !left {
			env[name] = value
		}
	}
	return pairs(env)
}

// reusedEnv is what such a command inherits, with a terminal of which no result can follow.
func reusedEnv(environ []string) map[string]string {
	env := map[string]string{"TERM": "dumb"}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}

// toolchainMax is how much a command of a toolchain may say, in bytes.
const toolchainMax = 1 << 20

// tells is what a command says of a toolchain, in an empty directory.
func (r *Run) tells(ctx context.Context, turn protocol.Turn, line, dir string, environ []string) ([]byte, error) {
	work, private := filepath.Join(dir, "work"), filepath.Join(dir, "private")
	for _, d := range []string{work, private} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	env := reusedEnv(environ)
	env["PWD"] = work
	said := &capped{}
	code, err := r.Walls.Run(ctx, Command{Line: line, Workspace: work, Dir: work, Env: pairs(env), Stdout: said, Stderr: said, Grace: DefaultGrace, Private: private, Sealed: true})
	switch {
	case err != nil:
		return nil, fmt.Errorf("toolchain of %s: %w", turn.Step, err)
	case code != 0:
		return nil, NotReusable("the toolchain command %q ended with exit status %d: %s", line, code, firstLine(said.String()))
	}
	return said.Bytes(), nil
}

// capped keeps the first toolchainMax bytes.
type capped struct{ bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	c.Buffer.Write(p[:min(len(p), max(0, toolchainMax-c.Len()))])
	return len(p), nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return NewRedactor(nil).String(strings.ToValidUTF8(s[:min(len(s), 200)], "\uFFFD"))
}

// turnParts are those of what a command is told: of steps before it what they concluded, and not which records they have.
func (r *Run) turnParts(turn protocol.Turn, part func(name string, value []byte)) error {
	turn.Reuse = &protocol.Reuse{}
	told, err := newTurnJSON(turn, r.Messages)
	if err != nil {
		return err
	}
	add := func(name string, value any) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		err = errors.Join(err, enc.Encode(value))
		part(name, b.Bytes())
	}
	add("visit", told.Visit)
	add("item", told.Item)
	add("edge prompt", told.EdgePrompt)
	add("inputs of the run", told.Inputs)
	add("output", told.OutputSchema)
	for _, name := range slices.Sorted(maps.Keys(turn.Env)) {
		add("env "+name+" of the role", turn.Env[name])
	}
	if turn.Stdin != nil {
		add("stdin", turn.Stdin)
	}
	for _, raw := range told.History {
		var p pastJSON
		err = errors.Join(err, json.Unmarshal(raw, &p))
		part(fmt.Sprintf("step %s#%d", p.Role, p.Visit), append(slices.Clip(raw), '\n'))
	}
	add("messages", told.Messages)
	if told.Omitted != nil {
		add("omitted", told.Omitted)
	}
	return err
}

// idSize is how much of a key names a run.
const idSize = 10

// runID, stepName and stepKey are what a command is told of where it runs. What may be reused learns nothing that differs
// between two runs with the same result.
func runID(turn protocol.Turn) protocol.RunID {
	if turn.Reuse == nil {
		return turn.Run
	}
	return protocol.RunID(strings.ToUpper(turn.Reuse.Key[:min(idSize, len(turn.Reuse.Key))]))
}

func stepName(turn protocol.Turn) string {
	if turn.Reuse == nil {
		return turn.Step.String()
	}
	return fmt.Sprintf("%s#%d", turn.Role.Name, turn.Visit)
}

func stepKey(turn protocol.Turn) string {
	if turn.Reuse == nil {
		return turn.Key
	}
	return turn.Reuse.Key
}
