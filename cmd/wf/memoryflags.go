package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// memoryFlags say which memory a command works on.
type memoryFlags struct {
	scope string // --scope; "" is the user's, of the user of the store
	model string // --model
}

// inMemory runs f at the target of the command line. A store of this machine is made when there is none and make
// is set.
func (a *app) inMemory(ctx context.Context, make bool, f func(*target) error) error {
	switch {
	case a.hubURL() == "" && a.worker != "":
		return usagef("--worker %s names a worker of a hub: name the hub with --hub", a.worker)
	case make:
		return a.atNew(ctx, f)
	}
	return a.at(ctx, f)
}

// ofMemory is the RunE of a command that works on a memory that is there.
func (a *app) ofMemory(f func(ctx context.Context, p *target, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.inMemory(ctx, false, func(p *target) error { return f(ctx, p, args) })
	}
}

// tellOthers says on stderr which other memories there are, where the one asked for is empty.
func (a *app) tellOthers(ctx context.Context, p *target, scope string) error {
	l, err := p.Scopes(ctx)
	if err != nil {
		return err
	}
	var others []string
	for _, x := range l.Items {
		if x.Scope != scope {
			others = append(others, x.Scope)
		}
	}
	if len(others) > 10 {
		others = append(others[:10], fmt.Sprintf("and %d more", len(others)-10))
	}
	a.Progress("nothing is remembered in %s", scope)
	if len(others) > 0 {
		a.Progress("there is %s: name one with --scope", strings.Join(others, ", "))
	}
	return nil
}
