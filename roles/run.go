package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"wf/protocol"
	"wf/roles/workspace"
)

// Messages builds what is sent to an agent, with at most limit bytes of what happened before.
type Messages func(h protocol.History, limit int) (protocol.Told, error)

// Run performs run roles: a command by sh -c, in the workspace, in its own process group.
//
// The command reads the turn as JSON (wf.turn/v1) in the file named by WF_TURN, and on stdin unless the role
// says what it reads there.
// It inherits the environment of wf without model keys and undeclared secrets; a confined one, which may
// run what an agent wrote, has what its walls let through and what the role says under env. What it writes
// is streamed as deltas and becomes the text of the conclusion, with secrets hidden, in valid
// UTF-8, at most OutputMax bytes of it.
//
// A role that declares an output answers on stdout, with frontmatter or a JSON object; its
// stderr is shown live and kept only when the attempt fails.
//
// A command that ended is never asked again; one that was cut off by a crash is simply run
// again, with the same WF_STEP_KEY.
type Run struct {
	// Messages builds what an agent in the place of the command would be sent; nil is none.
	Messages Messages
	// Environ is the environment as name=value; nil is that of the process.
	Environ []string
	// ModelKeys are further variables that no command inherits, as the configuration names them.
	ModelKeys []string
	// Grace is from SIGTERM to SIGKILL; 0 is DefaultGrace.
	Grace time.Duration
	// OutputMax bounds the text in bytes; 0 is OutputMax, the constant.
	OutputMax int
	// Walls confine the commands of turns that are Confined; nil refuses them.
	Walls Walls
	// System are the variables that every command has, also one whose result may be reused; nil is PATH, HOME, LANG
	// and TZ.
	System []string
}

var _ Layered = (*Run)(nil)

// Layered reports whether the command is confined.
func (r *Run) Layered(turn protocol.Turn) bool { return turn.Confined }

// Perform runs the command. An exit status other than 0 is a Failure of class exit_code (or
// exit_75: try again) unless the role goes on on error. When ctx is done the error is its
// cause, and the conclusion beside it holds the output so far.
func (r *Run) Perform(ctx context.Context, turn protocol.Turn, emit Emit) (protocol.Conclusion, error) {
	if ctx.Err() != nil {
		return protocol.Conclusion{}, context.Cause(ctx)
	}
	if turn.Confined && r.Walls == nil {
		return protocol.Conclusion{}, fmt.Errorf("command of %s: it is to be confined, and nothing here confines commands", turn.Step)
	}
	environ := r.Environ
	if environ == nil {
		environ = os.Environ()
	}
	secrets := Secrets(environ, turn.Secrets)
	env, err := r.environment(environ, secrets, turn)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	dir, err := directory(turn)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	defer dir.Close()
	rendered, err := newTurnJSON(turn, r.Messages)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	in, err := openInput(turn, rendered)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	defer in.close()
	env["WF_TURN"], env["PWD"] = in.turn, filepath.Join(turn.Workspace, turn.Role.Dir)

	out := r.newOutput(ctx, turn, emit, secrets)
	c := Command{Line: turn.Role.Run, Workspace: turn.Workspace, At: turn.At, Private: turn.Private, Trust: turn.Trust(), Dir: env["PWD"], cwd: dir.Path,
		Env: pairs(env), Turn: in.turn, Artifacts: turn.Artifacts, Stdin: in.stdin, Stdout: out.stdout, Grace: cmp.Or(r.Grace, DefaultGrace)}
	c.Network, c.Hosts = turn.Role.Reach()
	if turn.Reuse != nil {
		c.Private, c.Sealed = turn.Reuse.Private, true
	}
	var hit []string
	c.Hit = func(text string) { hit = append(hit, text) }
	var appeared *protocol.Appeared
	c.Appeared = func(a *protocol.Appeared) { appeared = a.Clean(NewRedactor(secrets).String) }
	if out.stderr != nil { // not a nil *stream in an interface
		c.Stderr = out.stderr
	}
	run := c.run
	if turn.Confined {
		if err := emit(Soon(ctx), r.Walls.Tier(c)); err != nil {
			return protocol.Conclusion{}, err
		}
		run = func(ctx context.Context) (ending, error) { return c.confined(ctx, r.Walls) }
	}
	end, err := run(ctx)
	if err == nil {
		err = out.flush()
	}
	if turn.Confined && appeared != nil && (err != nil || end.stopped) {
		tier := r.Walls.Tier(c)
		tier.Appeared = appeared
		if failed := emit(context.WithoutCancel(ctx), tier); failed != nil {
			return out.conclusion(true), failed
		}
	}
	switch {
	case errors.Is(err, protocol.ErrLeft): // no edge and no retry goes on behind that
		return protocol.Conclusion{}, fmt.Errorf("command of %s: %w", turn.Step, err)
	case end.stopped && ctx.Err() != nil:
		return out.conclusion(true), context.Cause(ctx)
	case errors.Is(err, syscall.E2BIG):
		return protocol.Conclusion{}, failure("run", "start_failed", "start_failed",
			"a value of env is too large for the environment of a command; pass it by stdin, or read it from the file WF_TURN")
	case errors.As(err, new(*exec.Error)), errors.As(err, new(*os.PathError)):
		return protocol.Conclusion{}, failure("run", "start_failed", "start_failed", "sh could not be started: %v", err)
	case err != nil:
		return protocol.Conclusion{}, fmt.Errorf("command of %s: %w", turn.Step, err)
	}
	if turn.Confined {
		if end.code != 0 {
			if met := r.Walls.Met(c, out.all.String()); met != "" {
				hit = append(hit, met)
			}
		}
		if len(hit) > 0 || appeared != nil {
			tier := r.Walls.Tier(c)
			tier.Met, tier.Appeared = strings.Join(hit, "; "), appeared
			if err := emit(ctx, tier); err != nil {
				return protocol.Conclusion{}, err
			}
		}
	}
	return out.conclude(turn.Role, end.code)
}

// ArtifactsVar is the environment variable that names the directory of the files that a visit is given.
const ArtifactsVar = "WF_ARTIFACTS"

// environment is what the command sees, but for the place of the turn.
func (r *Run) environment(environ []string, secrets map[string]string, turn protocol.Turn) (map[string]string, error) {
	env := map[string]string{}
	switch {
	case turn.Reuse != nil:
		env = reusedEnv(turn.Reuse.Environ)
	case !turn.Confined:
		env = inherit(environ, turn.Secrets, r.ModelKeys)
	}
	var unset []string
	for name, value := range turn.Env {
		expanded, missing := protocol.ExpandSecrets(value, func(name string) (string, bool) {
			v, ok := secrets[name]
			return v, ok
		})
		unset = append(unset, missing...)
		env[name] = strings.ReplaceAll(expanded, "\x00", "")
	}
	if slices.Sort(unset); len(unset) > 0 {
		f := failure("env", "secret_missing", "", "secret %s is not set in the environment; export it, then wf resume",
			strings.Join(slices.Compact(unset), ", "))
		f.Suspend, f.Err = true, protocol.ErrModel
		return nil, f
	}
	if _, declared := turn.Env["TRACEPARENT"]; !declared && turn.TraceParent != "" && turn.Reuse == nil {
		env["TRACEPARENT"] = turn.TraceParent
	}
	if turn.Artifacts != "" {
		env[ArtifactsVar] = turn.Artifacts
	}
	maps.Copy(env, map[string]string{
		"WF_RUN_ID":   string(runID(turn)),
		"WF_ATTEMPT":  strconv.Itoa(turn.Attempt),
		"WF_STEP_KEY": stepKey(turn),
	})
	return env, nil
}

// Secrets are those of the named secrets that an environment (name=value) has, name → value.
func Secrets(environ, names []string) map[string]string {
	all := make(map[string]string, len(environ))
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	out := make(map[string]string, len(names))
	for _, name := range names {
		if value, ok := all[name]; ok {
			out[name] = value
		}
	}
	return out
}

// directory is where the command works: it exists and lies in the workspace, also when links that
// an agent may have made are followed.
func directory(turn protocol.Turn) (*workspace.Cwd, error) {
	dir := turn.Role.Dir
	if dir != "" && !filepath.IsLocal(dir) {
		return nil, failure("run", "dir_outside", "", "dir %q lies outside of the workspace", dir)
	}
	cwd, err := workspace.Enter(turn.Workspace, dir)
	switch {
	case err == nil:
		return cwd, nil
	case dir == "":
		return nil, fmt.Errorf("workspace of run %s: %w", turn.Run, err)
	case workspace.Outside(err):
		return nil, failure("run", "dir_outside", "", "dir %q leads outside of the workspace by a link", dir)
	case errors.Is(err, syscall.ENOTDIR):
		return nil, failure("run", "dir_missing", "", "dir %q is not a directory", dir)
	}
	return nil, failure("run", "dir_missing", "", "dir %q: no such directory in the workspace", dir)
}

// failure makes an outcome of a visit; it goes into the record, so nothing volatile may be
// in the message.
func failure(phase, code, class, format string, args ...any) *protocol.Failure {
	return &protocol.Failure{
		ErrorInfo: protocol.ErrorInfo{Code: code, Phase: phase, Message: fmt.Sprintf(format, args...)},
		Class:     class,
	}
}

// An output takes what a command writes: all of it as one text, and, for a role that declares
// fields, stdout alone beside it.
type output struct {
	stdout, stderr *stream // stderr is nil where it is joined to stdout
	all, answer    *window // answer is nil without declared fields
}

func (r *Run) newOutput(ctx context.Context, turn protocol.Turn, emit Emit, secrets map[string]string) *output {
	limit := cmp.Or(r.OutputMax, OutputMax)
	send := func(kind, text string) error {
		if ctx.Err() != nil {
			return nil // there is no watcher any more; what the command says while it ends is kept
		}
		return emit(ctx, protocol.Delta{Kind: kind, Text: text})
	}
	o := &output{all: &window{max: limit}}
	o.stdout = &stream{kind: "stdout", clean: NewCleaner(NewRedactor(secrets)), send: send, keep: []*window{o.all}}
	if turn.Role.Output != "" {
		o.answer = &window{max: limit}
		o.stdout.keep = append(o.stdout.keep, o.answer)
		o.stderr = &stream{kind: "stderr", clean: NewCleaner(NewRedactor(secrets)), send: send, keep: []*window{o.all}}
	}
	return o
}

// flush ends the streams.
func (o *output) flush() error {
	for _, s := range []*stream{o.stdout, o.stderr} {
		if s != nil {
			if err := s.take(s.clean.Text(nil, true)); err != nil {
				return err
			}
		}
	}
	return nil
}

// conclusion holds the text alone: everything, or, where fields were declared, the answer.
func (o *output) conclusion(everything bool) protocol.Conclusion {
	from := o.all
	if o.answer != nil && !everything {
		from = o.answer
	}
	return protocol.Conclusion{Text: new(from.String())}
}

// conclude is the outcome of a command that ended by itself.
func (o *output) conclude(role protocol.Role, code int) (protocol.Conclusion, error) {
	failed := code != 0 && !role.ContinueOnError
	c := o.conclusion(failed)
	data := map[string]any{}
	if role.Output != "" && !failed {
		fields, err := declaredFields(role.Output, *c.Text)
		if err != nil {
			c = o.conclusion(true)
			c.Data = exitData(nil, code)
			return c, err
		}
		data = fields
	}
	c.Data = exitData(data, code)
	if !failed {
		return c, nil
	}
	class := "exit_code"
	if code == 75 {
		class = "exit_75"
	}
	return c, failure("run", "exit_code", class, "exit status %d", code)
}

// A stream cleans one of the two outputs, shows it and keeps it.
type stream struct {
	kind  string
	clean *Cleaner
	send  func(kind, text string) error
	keep  []*window
}

var _ io.Writer = (*stream)(nil)

func (s *stream) Write(p []byte) (int, error) {
	return len(p), s.take(s.clean.Text(p, false))
}

func (s *stream) take(text string) error {
	if text == "" {
		return nil
	}
	for _, k := range s.keep {
		k.write(text)
	}
	return s.send(s.kind, text)
}
