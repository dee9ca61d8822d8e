package service

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"wf/agentkit/config"
	"wf/api"
	"wf/engine/lang"
	"wf/protocol"
	"wf/service/compose"
)

// A fork of a run from elsewhere would run what others wrote, where they said. It is the user's own, and
// may go on, only once
//
//	the user named or trusted what it does   --with FILE, wf trust, --trust CID
//	and where it does it                     --dir DIR, --files, or the current directory
//
// or agreed to both at the terminal. Over HTTP a client of scope admin may let it go on where the daemon starts
// its runs anyway, under what the user of this machine trusted; a client names no place. Else the fork is shown,
// and waits for wf store adopt as the run itself does. A definition that a client brings came from
// elsewhere too.

// mayBring is nil if what a fork brings may be given by its asker: a client brings a definition only with scope
// admin, and names no place of this machine.
func mayBring(ctx context.Context, f api.Fork) error {
	c, remote := api.CallerOf(ctx)
	switch {
	case !remote:
		return nil
	case f.Dir != "" || f.Worktree || f.Files:
		return protocol.ErrForbidden.With("fork it on that machine", "a client names no workspace on the machine of the store")
	case f.With != nil && !c.Owner:
		return protocol.ErrForbidden.With("use a token of scope admin", "%s may not bring a definition: that needs scope %q", c.Name, "admin")
	}
	return nil
}

// brought reports whether a definition makes a fork that came from elsewhere: a client brought it, and it has
// powers that were not granted here. Such a fork is made and does not go on.
func (l *Local) brought(ctx context.Context, d compose.Definition, hold bool) (foreign bool, err error) {
	if _, remote := api.CallerOf(ctx); !remote {
		return false, nil // the user of this machine named it
	}
	wanted, err := l.Wanted(d.Program, compose.Origin{Source: d.Source, Workspace: l.Dir})
	if err != nil {
		return false, err
	}
	why := compose.Untrusted(wanted, config.Serve, config.Remember, config.Unconfined)
	if why == nil || hold {
		return why != nil, nil
	}
	def, err := d.Program.Block()
	if err != nil {
		return false, err
	}
	return false, protocol.ErrUntrusted.With("without --run the fork is made and shown there, and on that machine wf store adopt lets it go on",
		"the definition %s came with the request, and is not trusted on the machine of the store: a fork does not run it", def.Link)
}

// mayGoOn answers engine.ForkOptions.Elsewhere. Only for a fork that goes on a person is asked.
func (l *Local) mayGoOn(ctx context.Context, run protocol.RunID, f api.Fork) func(*lang.Program, string) (bool, error) {
	return func(p *lang.Program, workspace string) (bool, error) {
		c, remote := api.CallerOf(ctx)
		known := f.With != nil && !remote
		if !known {
			wanted, err := l.Wanted(p, compose.Origin{Workspace: workspace})
			if err != nil {
				return false, err
			}
			known = !slices.ContainsFunc(wanted, func(x config.Grant) bool { return x.Power != config.Schedule && x.Power != config.Webhook })
		}
		here, err := os.Getwd()
		if err != nil {
			return false, err
		}
		placed := f.Dir != "" || f.Files || sameDir(workspace, here)
		if remote {
			placed = c.Owner && sameDir(workspace, l.Dir)
		}
		switch {
		case known && placed:
			return true, nil
		case f.Hold:
			return false, nil
		case remote:
			return false, l.Engine.Own(ctx, run)
		case l.Agree == nil:
			return false, untrustedFork(p, run, f, known, placed)
		}
		return l.Agree(ctx, run, workspace, compose.Acts(p))
	}
}

// sameDir reports whether two paths lead to one directory.
func sameDir(a, b string) bool {
	a, err := filepath.EvalSymlinks(a)
	if err != nil {
		return false
	}
	b, err = filepath.EvalSymlinks(b)
	return err == nil && a == b
}

// untrustedFork refuses a fork that would run unasked, with the command that runs it.
func untrustedFork(p *lang.Program, run protocol.RunID, f api.Fork, known, placed bool) error {
	def, err := p.Block()
	if err != nil {
		return err
	}
	line := "wf fork " + protocol.ShellWord(string(run)+":"+f.Step)
	if f.After {
		line += " --after"
	}
	line += " --run"
	if !placed {
		line += " --dir DIR"
	}
	if !known {
		line += " --trust " + def.Link.String()
	}
	return protocol.ErrForeign.With("wf show "+string(run)+" shows what it does, "+line+" runs that; without --run the fork is made and shown",
		"run %s came from elsewhere: a fork of it does not run unasked", run)
}
