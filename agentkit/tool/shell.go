package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"wf/agentkit/sandbox"
	"wf/protocol"
	"wf/roles"
)

// Bounds of a command.
const (
	StdoutMax      = 20_000 // characters
	StderrMax      = 5_000
	DefaultTimeout = 120 * time.Second
	MaxTimeout     = 30 * time.Minute
)

type shellArgs struct {
	Command string `json:"command"`
	Timeout int64  `json:"timeout"` // seconds, 0 is DefaultTimeout
}

func shell() Tool {
	return reading(Tool{
		Name: "shell",
		Parameters: protocol.JSON(`{"type":"object","required":["command"],"additionalProperties":false,"properties":{` +
			`"command":{"type":"string","description":"what sh -c runs"},` +
			`"timeout":{"type":"integer","minimum":1,"maximum":1800,"description":"seconds"}}}`),
		Confined: true,
	}, func(ctx context.Context, at Workspace, args shellArgs) (Result, error) {
		timeout := DefaultTimeout
		if args.Timeout > 0 {
			timeout = min(time.Duration(min(args.Timeout, 1<<20))*time.Second, MaxTimeout)
		}
		return command(ctx, at, args.Command, timeout)
	}, showCommand, "command")
}

// command runs a command until all that it started has ended, and tells what came of it.
func command(ctx context.Context, at Workspace, line string, timeout time.Duration) (Result, error) {
	if strings.IndexByte(line, 0) >= 0 {
		return Failed("the command holds a NUL byte"), nil
	}
	limited, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	stdout, stderr := newEnds(StdoutMax), newEnds(StderrMax)
	var met []string
	at.met = func(text string) { met = append(met, text) }
	var appeared *protocol.Appeared
	at.appeared = func(a *protocol.Appeared) { appeared = a }
	run := confined
	if at.Sandbox == sandbox.Off {
		run = unconfined
	}
	shownOut, shownErr := newWatcher(at, "stdout", stdout), newWatcher(at, "stderr", stderr)
	code, err := run(limited, at, line, shownOut, shownErr)
	shownOut.end()
	shownErr.end()
	if errors.Is(err, protocol.ErrLeft) { // that the command was stopped matters less
		r := Failed("%v", err)
		r.Appeared = appeared
		return r, err
	}
	if ctx.Err() != nil {
		return Result{Appeared: appeared}, ctx.Err()
	}
	r := Result{Content: fmt.Sprintf("exit code: %d", code)}
	switch {
	case limited.Err() != nil:
		r = Failed("the command was stopped after %v", timeout)
	case errors.Is(err, sandbox.ErrUnavailable):
		return Failed("%v. The command was not run; only a person can allow that, with \"sandbox: off\" on the role.", err), nil
	case err != nil:
		return Failed("the command could not be run: %v", err), nil
	}
	out, errs := section(at, "stdout", stdout), section(at, "stderr", stderr)
	r.Content += out + errs
	if at.Sandbox != sandbox.Off && (sandbox.MetWall(errs) || (code != 0 || r.IsError) && sandbox.MetWall(out)) {
		met = append(met, sandbox.Probe().Met(at.policy()))
	}
	for _, text := range met {
		r.Content += "\n" + text
	}
	r.Appeared = appeared
	return r, nil
}

// grace is how long a stopped command has between SIGTERM and SIGKILL.
const grace = time.Second

// unconfined runs a command for a role that says "sandbox: off", with no more of the environment than others
// get. What it started ends with it.
func unconfined(ctx context.Context, at Workspace, line string, stdout, stderr io.Writer) (int, error) {
	return roles.Command{
		Line: line, Workspace: at.root(), Dir: at.Dir, Env: append(append(sandbox.Environ(), "PWD="+at.Dir), at.Environ...),
		Stdout: stdout, Stderr: stderr, Grace: grace, Wholly: true, Appeared: at.appeared,
	}.Unconfined(ctx)
}

func confined(ctx context.Context, at Workspace, line string, stdout, stderr io.Writer) (int, error) {
	return sandbox.Run(ctx, at.policy(), []string{"sh", "-c", line}, stdout, stderr)
}

func (w Workspace) policy() sandbox.Policy {
	return sandbox.Policy{Workspace: w.root(), At: w.At, Private: w.Private, Trust: w.Trust, Dir: w.Dir, Network: w.Network, Hosts: w.Hosts, Met: w.met, Appeared: w.appeared, Environ: w.Environ, Grants: w.Grants}
}

func section(at Workspace, name string, e *ends) string {
	s := strings.TrimRight(e.text(at.clean), "\n")
	if s == "" {
		return ""
	}
	return "\n" + name + ":\n" + s
}
