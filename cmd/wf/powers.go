package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/agentkit/config"
	"wf/agentkit/mcp"
	"wf/cas"
	"wf/engine/lang"
	"wf/protocol"
)

// What a definition can do beyond the walls around it wants a person's word, once for each CID:
//
//	serve, schedule   a daemon starts it, and it runs commands, reaches the network or sends prompts elsewhere
//	unconfined        a role says "sandbox: off" in a definition with an agent, under wf run and a daemon alike
//
// Who runs a file with wf run gives the word for the rest of it by that.

// powersOf are the powers that a definition needs to be served and run.
func powersOf(loaded *config.Loaded, p *lang.Program) []config.Power {
	var out []config.Power
	if reaches(loaded, p) {
		out = append(out, config.Serve)
		if p.Workflow.Schedule != nil {
			out = append(out, config.Schedule)
		}
	}
	if unconfined(p, p.HasAgent()) {
		out = append(out, config.Unconfined)
	}
	return out
}

// unconfined reports whether commands of a definition that would be confined are not: those of an agent,
// and those of run roles where the definition, or one that calls it, has an agent.
func unconfined(p *lang.Program, agents bool) bool {
	return slices.ContainsFunc(p.Workflow.Roles, func(r protocol.Role) bool {
		child := p.Children[r.Workflow]
		return r.Sandbox == protocol.SandboxOff && (agents || r.Action == protocol.ActPrompt) || child != nil && unconfined(child, agents)
	})
}

// reaches reports whether a definition reaches beyond the sandbox, this machine or its user's purse:
// by a command, an agent without walls, a tool of an MCP server, or a model that is no server of this machine.
func reaches(loaded *config.Loaded, p *lang.Program) bool {
	return slices.ContainsFunc(p.Workflow.Roles, func(r protocol.Role) bool {
		child := p.Children[r.Workflow]
		switch {
		case r.Action == protocol.ActRun, r.Sandbox == protocol.SandboxOff, reachesOut(&r), slices.ContainsFunc(r.Tools, ofServer), child != nil && reaches(loaded, child):
			return true
		case r.Action != protocol.ActPrompt:
			return false
		}
		models := r.Model
		if len(models) == 0 {
			found, err := loaded.Resolve(r.Name, nil, nil, os.LookupEnv)
			if err != nil {
				return false // it cannot start without a model that the client names
			}
			models = found.Models
		}
		return slices.ContainsFunc(models, func(m string) bool { return !loaded.Local(m) })
	})
}

// reachesOut reports whether commands of a role reach beyond their own loopback.
func reachesOut(r *protocol.Role) bool {
	all, hosts := r.Reach()
	return all || len(hosts) > 0
}

func ofServer(tool string) bool { return strings.HasPrefix(tool, mcp.Prefix) }

// grants are what the user trusts, with what the command line and WF_TRUST add.
func (a *app) grants() (config.Grants, error) {
	links, err := a.givenTrust()
	return config.GrantsIn(cas.StateDir(os.Getenv), links), err
}

// givenTrust is what the command line and WF_TRUST trust, for this process alone.
func (a *app) givenTrust() ([]protocol.Link, error) {
	given := slices.Clone(a.trusted)
	if more := os.Getenv("WF_TRUST"); more != "" {
		given = append(given, strings.Split(more, ",")...)
	}
	var links []protocol.Link
	for _, text := range given {
		l, err := protocol.ParseLink(strings.TrimSpace(text))
		if err != nil {
			return nil, fail(protocol.ErrUsage, "wf trust --list prints the CIDs of what can be trusted", "--trust, WF_TRUST: %v", err)
		}
		links = append(links, l)
	}
	return links, nil
}

// wanted are the powers that a definition needs and was not trusted with, as grants to be.
func (a *app) wanted(p *lang.Program, file string, source []byte) ([]config.Grant, error) {
	loaded, err := a.config()
	if err != nil {
		return nil, err
	}
	powers := powersOf(loaded, p)
	if len(powers) == 0 {
		return nil, nil
	}
	g, err := a.grants()
	if err != nil {
		return nil, err
	}
	def, err := p.Block()
	if err != nil {
		return nil, err
	}
	var out []config.Grant
	for _, power := range powers {
		has, err := g.Has(power, def.Link)
		if err != nil {
			return nil, err
		}
		if !has {
			out = append(out, config.Grant{Power: power, CID: def.Link, Name: p.Workflow.Name, File: file, Text: wholeSource(p, source)})
		}
	}
	return out, nil
}

// wholeSource is the text of a definition with those of its sub-workflows, each once: a diff of it hides
// no change of what is trusted.
func wholeSource(p *lang.Program, source []byte) string {
	if source == nil {
		return ""
	}
	var b strings.Builder
	b.Write(source)
	sources := p.Sources()
	seen := map[protocol.Link]bool{}
	var add func(*lang.Program)
	add = func(p *lang.Program) {
		for i := range p.Workflow.Roles {
			link := p.Workflow.Roles[i].Workflow
			child := p.Children[link]
			if child == nil || seen[link] {
				continue
			}
			seen[link] = true
			text := string(sources[link])
			if text == "" { // only its canonical form is known
				text = strings.Join(actsOf(child), "\n") + "\n"
			}
			fmt.Fprintf(&b, "\n# sub-workflow %s\n%s", child.Workflow.Name, text)
			add(child)
		}
	}
	add(p)
	return b.String()
}

// untrusted is the error for a power that is wanted, nil where it is not among those.
func untrusted(wanted []config.Grant, powers ...config.Power) error {
	for _, x := range wanted {
		if !slices.Contains(powers, x.Power) {
			continue
		}
		what := map[config.Power]string{
			config.Serve:      "it waits for trust: a daemon starts it only once a person has looked at it",
			config.Schedule:   "its schedule waits for trust: the clock starts it only once a person has looked at it",
			config.Unconfined: `it says "sandbox: off": whatever its agents write runs as you`,
		}[x.Power]
		name := x.File
		if name == "" {
			name = "the workflow " + x.Name
		}
		return fail(protocol.ErrUntrusted, trustAdvice(x), "%s is not trusted: %s", name, what)
	}
	return nil
}

// trustAdvice is what makes a grant.
func trustAdvice(x config.Grant) string {
	unattended := "--trust " + x.CID.String() + " where no person can be asked"
	if x.File == "" {
		return unattended
	}
	return "wf trust " + shellWord(x.File) + ", or " + unattended
}

// askTrust shows what things can do, and how they differ from what is trusted, and asks once for all
// of them.
func (a *app) askTrust(ctx context.Context, question string, wanted []config.Grant, acts func(config.Grant) []string, yes bool) error {
	g, err := a.grants()
	if err != nil {
		return err
	}
	shown := map[protocol.Link]bool{}
	for _, x := range wanted {
		a.progress("%s %s (%s): %s", x.CID.Short(), visible(x.Name), visible(x.File), powerText[x.Power])
		if shown[x.CID] {
			continue
		}
		shown[x.CID] = true
		change, err := g.Change(x)
		if err != nil {
			return err
		}
		if change != "" {
			a.progress("%s", visible(change))
			continue
		}
		for _, act := range acts(x) {
			a.progress("    %s", indentLines(visible(act), "      "))
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

// mayRun asks the person at the terminal about a definition that has no walls. Where no person can
// be asked, Admit refuses it.
func (a *app) mayRun(ctx context.Context, p *lang.Program, d definition) error {
	if !unconfined(p, p.HasAgent()) || !a.interactive() {
		return nil
	}
	file, err := filepath.Abs(d.path)
	if err != nil {
		return err
	}
	wanted, err := a.wanted(p, file, d.source)
	if err != nil {
		return err
	}
	wanted = slices.DeleteFunc(wanted, func(x config.Grant) bool { return x.Power != config.Unconfined })
	if len(wanted) == 0 {
		return nil
	}
	return a.askTrust(ctx, plural(1, "definition"), wanted, func(config.Grant) []string { return actsOf(p) }, false)
}

// admitPowers refuses a definition without walls that was not trusted.
func (a *app) admitPowers(p *lang.Program, file string) error {
	if !unconfined(p, p.HasAgent()) {
		return nil
	}
	wanted, err := a.wanted(p, file, nil)
	if err != nil {
		return err
	}
	return untrusted(wanted, config.Unconfined)
}
