package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"wf/agentkit/config"
	"wf/api"
	"wf/cmd/internal/render"
	"wf/engine/lang"
	"wf/protocol"
	"wf/service/compose"
)

// A fork of a run from elsewhere would run what others wrote, where they said. It is the user's own, and
// may go on, only once
//
//	the user named or trusted what it does   --with FILE, wf trust, --trust CID
//	and where it does it                     --dir DIR, or the current directory
//
// or agreed to both at the terminal. Else it is shown, and waits for wf store adopt as the run itself does.

// mayFork answers engine.ForkOptions.Elsewhere. Only with --run a person is asked.
func (a *app) mayFork(ctx context.Context, at api.Ref, f forkFlags) func(*lang.Program, string) (bool, error) {
	return func(p *lang.Program, workspace string) (bool, error) {
		known := f.with != ""
		if !known {
			wanted, err := a.Wanted(p, "", nil)
			if err != nil {
				return false, err
			}
			known = !slices.ContainsFunc(wanted, func(x config.Grant) bool { return x.Power != config.Schedule })
		}
		placed := f.dir != "" || isHere(workspace)
		switch {
		case known && placed:
			return true, nil
		case !f.run:
			return false, nil
		case !a.interactive():
			return false, a.untrustedFork(p, at, known, placed)
		}
		a.Progress("run %s came from elsewhere. Its fork works in %s, and may run", at.Run, render.Visible(workspace))
		acts := compose.Acts(p)
		for _, act := range acts {
			a.Progress("    %s", render.IndentLines(render.Visible(act), "      "))
		}
		if len(acts) == 0 {
			a.Progress("    nothing outside of the sandbox")
		}
		agreed, err := a.confirm(ctx, "Let the fork run there?")
		if err == nil && !agreed {
			err = fail(errRefused, "without --run it is made and shown", "run %s was not forked", at.Run)
		}
		return agreed, err
	}
}

// isHere reports whether a path is the current directory.
func isHere(path string) bool {
	here, err := os.Getwd()
	if err != nil {
		return false
	}
	a, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	b, err := filepath.EvalSymlinks(here)
	return err == nil && a == b
}

// untrustedFork refuses a fork that would run unasked, with the command that runs it.
func (a *app) untrustedFork(p *lang.Program, at api.Ref, known, placed bool) error {
	def, err := p.Block()
	if err != nil {
		return err
	}
	line := "wf fork " + protocol.ShellWord(at.String()) + " --run"
	if !placed {
		line += " --dir DIR"
	}
	if !known {
		line += " --trust " + def.Link.String()
	}
	return fail(protocol.ErrForeign, "wf show "+string(at.Run)+" shows what it does, "+line+" runs that; without --run the fork is made and shown",
		"run %s came from elsewhere: a fork of it does not run unasked", at.Run)
}
