package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"wf/agentkit/config"
	"wf/cmd/internal/render"
	"wf/engine/lang"
	"wf/protocol"
	"wf/service/compose"
)

// askTrust shows what things can do, and how they differ from what is trusted, and asks once for all
// of them.
func (a *app) askTrust(ctx context.Context, question string, wanted []config.Grant, acts func(config.Grant) []string, yes bool) error {
	g, err := a.Grants()
	if err != nil {
		return err
	}
	shown := map[protocol.Link]bool{}
	for _, x := range wanted {
		a.Progress("%s %s (%s): %s", x.CID.Short(), render.Visible(x.Name), render.Visible(x.File), powerText[x.Power])
		if shown[x.CID] {
			continue
		}
		shown[x.CID] = true
		change, err := g.Change(x)
		if err != nil {
			return err
		}
		if change != "" {
			a.Progress("%s", render.Visible(change))
			continue
		}
		for _, act := range acts(x) {
			a.Progress("    %s", render.IndentLines(render.Visible(act), "      "))
		}
	}
	if !yes {
		agreed, err := a.confirm(ctx, "Trust "+question+"?")
		if err != nil {
			return err
		}
		if !agreed {
			return fail(errRefused, "--yes does it without asking", "%s: not trusted", question)
		}
	}
	var errs []error
	for _, x := range wanted {
		errs = append(errs, g.Add(x))
	}
	return errors.Join(errs...)
}

// mayRun asks the person at the terminal about a definition that has no walls. Where no person can
// be asked, Admit refuses it.
func (a *app) mayRun(ctx context.Context, p *lang.Program, d compose.Definition) error {
	if !compose.Unconfined(p, p.HasAgent()) || !a.interactive() {
		return nil
	}
	file, err := filepath.Abs(d.Path)
	if err != nil {
		return err
	}
	wanted, err := a.Wanted(p, file, d.Source)
	if err != nil {
		return err
	}
	wanted = slices.DeleteFunc(wanted, func(x config.Grant) bool { return x.Power != config.Unconfined })
	if len(wanted) == 0 {
		return nil
	}
	return a.askTrust(ctx, protocol.Plural(1, "definition"), wanted, func(config.Grant) []string { return compose.Acts(p) }, false)
}

// powerText says what a power lets happen.
var powerText = map[config.Power]string{
	config.Serve:      "wf serve starts it when a client asks",
	config.Schedule:   "wf serve starts it by the clock",
	config.Unconfined: "runs, as you, whatever its agents write (sandbox: off)",

	config.StartServer:   "a server of tools",
	config.SetPrices:     "what models cost",
	config.SendPrompts:   "a provider of models",
	config.ChooseDefault: "where prompts go",
	config.OfferModels:   "models that clients of a daemon may choose",
	config.OpenWalls:     "the walls of agents' commands",
}
