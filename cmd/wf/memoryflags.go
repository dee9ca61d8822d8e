package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// memoryFlags say which memory a command works on.
type memoryFlags struct {
	scope string // --scope; "" is the user's, of the user of the store
	model string // --model
}

// inMemory runs f at the target of the command line. A store of this machine is made when there is none and make
// is set.
func (a *app) inMemory(ctx context.Context, make bool, f func(*target) error) error {
	url := a.hubURL()
	switch {
	case url == "" && a.worker != "":
		return usagef("--worker %s names a worker of a hub: name the hub with --hub", a.worker)
	case url != "" || !make:
		return a.at(ctx, f)
	}
	s, err := a.OpenStore(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(a.atStore(s)), s.Close())
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
