package compose

import (
	"fmt"
	"os"
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

// PowersOf are the powers that a definition needs to be served and run.
func PowersOf(loaded *config.Loaded, p *lang.Program) []config.Power {
	var out []config.Power
	if reaches(loaded, p) {
		out = append(out, config.Serve)
		if p.Workflow.Schedule != nil {
			out = append(out, config.Schedule)
		}
	}
	if Unconfined(p, p.HasAgent()) {
		out = append(out, config.Unconfined)
	}
	return out
}

// Unconfined reports whether commands of a definition that would be confined are not: those of an agent,
// and those of run roles where the definition, or one that calls it, has an agent.
func Unconfined(p *lang.Program, agents bool) bool {
	return slices.ContainsFunc(p.Workflow.Roles, func(r protocol.Role) bool {
		child := p.Children[r.Workflow]
		return r.Sandbox == protocol.SandboxOff && (agents || r.Action == protocol.ActPrompt) || child != nil && Unconfined(child, agents)
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

// Grants are what the user trusts, with what the command line and WF_TRUST add.
func (u *Setup) Grants() (config.Grants, error) {
	links, err := u.givenTrust()
	return config.GrantsIn(cas.StateDir(os.Getenv), links), err
}

// givenTrust is what the command line and WF_TRUST trust, for this process alone.
func (u *Setup) givenTrust() ([]protocol.Link, error) {
	given := slices.Clone(u.Trusted)
	if more := os.Getenv("WF_TRUST"); more != "" {
		given = append(given, strings.Split(more, ",")...)
	}
	var links []protocol.Link
	for _, text := range given {
		l, err := protocol.ParseLink(strings.TrimSpace(text))
		if err != nil {
			return nil, protocol.ErrUsage.With("wf trust --list prints the CIDs of what can be trusted", "--trust, WF_TRUST: %v", err)
		}
		links = append(links, l)
	}
	return links, nil
}

// Wanted are the powers that a definition needs and was not trusted with, as grants to be.
func (u *Setup) Wanted(p *lang.Program, file string, source []byte) ([]config.Grant, error) {
	loaded, err := u.Config()
	if err != nil {
		return nil, err
	}
	powers := PowersOf(loaded, p)
	if len(powers) == 0 {
		return nil, nil
	}
	g, err := u.Grants()
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
				text = strings.Join(Acts(child), "\n") + "\n"
			}
			fmt.Fprintf(&b, "\n# sub-workflow %s\n%s", child.Workflow.Name, text)
			add(child)
		}
	}
	add(p)
	return b.String()
}

// Untrusted is the error for a power that is wanted, nil where it is not among those.
func Untrusted(wanted []config.Grant, powers ...config.Power) error {
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
		return protocol.ErrUntrusted.With(trustAdvice(x), "%s is not trusted: %s", name, what)
	}
	return nil
}

// trustAdvice is what makes a grant.
func trustAdvice(x config.Grant) string {
	unattended := "--trust " + x.CID.String() + " where no person can be asked"
	if x.File == "" {
		return unattended
	}
	return "wf trust " + protocol.ShellWord(x.File) + ", or " + unattended
}

// admitPowers refuses a definition without walls that was not trusted.
func (u *Setup) admitPowers(p *lang.Program, file string) error {
	if !Unconfined(p, p.HasAgent()) {
		return nil
	}
	wanted, err := u.Wanted(p, file, nil)
	if err != nil {
		return err
	}
	return Untrusted(wanted, config.Unconfined)
}

// Acts is what a workflow and its sub-workflows run as the user: commands, and the commands of
// agents that say "sandbox: off".
func Acts(p *lang.Program) []string {
	out := []string{}
	for _, r := range p.Workflow.Roles {
		switch {
		case r.Action == protocol.ActRun:
			out = append(out, r.Name+": "+r.Run)
		case r.Sandbox == protocol.SandboxOff:
			out = append(out, r.Name+": any command that its model writes, without a sandbox")
		}
		if child := p.Children[r.Workflow]; child != nil {
			for _, act := range Acts(child) {
				out = append(out, r.Name+"/"+act)
			}
		}
	}
	return out
}
