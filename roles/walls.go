package roles

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"wf/protocol"
	"wf/roles/workspace"
	"wf/roles/workspace/appear"
)

// Walls confine commands: what an agent could have written runs within them.
type Walls interface {
	// Tier is what they hold of a command on this machine, for the journal.
	Tier(c Command) protocol.SandboxTier
	// Run runs a command until it and all that it started have ended, and gives its exit status, 128+n
	// after signal n. When ctx is done it ends the command and gives ctx's error. An error that wraps protocol.ErrLeft
	// says that it ran, and left what could not be removed. Any other error says that nothing has run.
	Run(ctx context.Context, c Command) (int, error)
	// Met says, of a command that failed, what its walls let through and how they are opened, where its
	// output looks as if it had met one; else "".
	Met(c Command, output string) string
}

// Hiding are Walls within which a command sees its workspace and the system alone, where the machine can.
type Hiding interface {
	// Hides tells, in a form to be compared, what a command sees besides on this machine. The error says why it sees more.
	Hides() (string, error)
}

// Lending are Walls that give a confined command settings of the user's own, although no role asks for them.
type Lending interface {
	// Lends tells them of a command, of which Workspace and Env are known, as parts of a key. What is not there is no part. The
	// error says which cannot be told.
	Lends(c Command) ([]protocol.MemoPart, error)
}

// A Command is what a run role starts.
type Command struct {
	Line      string   // what sh -c runs
	Workspace string   // which a confined command may write
	At        string   // where a confined command finds Workspace, as Turn.At
	Dir       string   // where it starts
	Network   bool     // of the machine, for a confined command
	Hosts     []string // endpoints that a confined command reaches without Network
	Env       []string // NAME=value; of a confined command on top of what the walls let through
	Turn      string   // file that a confined command may open, wherever it lies
	Artifacts string   // directory that it may read, wherever it lies; "" is none
	Stdin     *os.File // a regular file; nil is nothing
	Stdout    io.Writer
	Stderr    io.Writer     // nil joins it to Stdout
	Grace     time.Duration // from SIGTERM to SIGKILL
	Wholly    bool          // of a command without walls: what it leaves in the background ends with it
	Hit       func(string)  // is called for each wall that Walls saw the command meet, before Run returns
	Private   string        // of a confined command: as Turn.Private
	Trust     protocol.Trust
	Sealed    bool // a confined command gets no devices and sockets of the user's, and the modes of files hold for it as root, too
	// Appeared is called with what the command left in the workspace on which other programs act, if it left
	// any, before Run returns; nil is not called.
	Appeared func(*protocol.Appeared)

	cwd string // the open Dir, for a command that is started here; "" opens it
}

// Bare are the walls of a place that is confined itself, such as a container without anything of the
// user's: commands run as they are. Name is their tier in the journal.
type Bare struct{ Name string }

// Tier names the place.
func (b Bare) Tier(Command) protocol.SandboxTier { return protocol.SandboxTier{Tier: b.Name} }

// Run runs the command as the user, without model keys and secrets in its environment, and what it leaves
// in the background is left alone.
func (b Bare) Run(ctx context.Context, c Command) (int, error) {
	c.Env = append(Inherit(os.Environ(), nil, nil), c.Env...)
	return c.Unconfined(ctx)
}

// Unconfined is Run of Walls that are none: the command runs as the user, in an environment of Env alone.
func (c Command) Unconfined(ctx context.Context) (int, error) {
	if c.cwd == "" {
		cwd, err := workspace.Enter(c.Workspace, c.Dir)
		if err != nil {
			return 0, err
		}
		defer cwd.Close()
		c.cwd = cwd.Path
	}
	watch, err := appear.Of(c.Workspace)
	if err != nil {
		return 0, err
	}
	span := watch.Begin()
	end, err := c.run(ctx)
	if a := span.End(); a != nil && c.Appeared != nil {
		c.Appeared(a)
	}
	if err == nil && end.stopped {
		err = context.Cause(ctx)
	}
	return end.code, err
}

// Met is nothing: there are no walls.
func (Bare) Met(Command, string) string { return "" }

// confined runs the command within walls. An error of a writer ends it.
func (c Command) confined(ctx context.Context, w Walls) (ending, error) {
	outer := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if c.Stderr == nil {
		c.Stderr = c.Stdout
	}
	guard := &stopper{stop: stop}
	out := stopping{guard, c.Stdout}
	errs := out
	if c.Stderr != c.Stdout {
		errs = stopping{guard, c.Stderr}
	}
	c.Stdout, c.Stderr = out, errs
	code, err := w.Run(ctx, c)
	switch {
	case err == nil:
		return ending{code: code}, guard.err
	case errors.Is(err, protocol.ErrLeft): // also of a command that was stopped
		return ending{stopped: outer.Err() != nil}, err
	case outer.Err() != nil:
		return ending{stopped: true}, nil
	case ctx.Err() != nil:
		return ending{stopped: true}, context.Cause(ctx)
	}
	return ending{}, err
}

// A stopper ends a command with the first error of one of its writers, which are called one at a time.
type stopper struct {
	mu   sync.Mutex
	stop context.CancelCauseFunc
	err  error
}

type stopping struct {
	*stopper
	to io.Writer
}

func (s stopping) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return len(p), nil // the command is ending; what it still says is not kept
	}
	if _, s.err = s.to.Write(p); s.err != nil {
		s.stop(s.err)
	}
	return len(p), nil
}
