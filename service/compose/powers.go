package compose

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/agentkit/config"
	"wf/agentkit/mcp"
	"wf/agentkit/memory"
	"wf/agentkit/tool"
	"wf/cas"
	"wf/engine/lang"
	"wf/protocol"
)

// What a definition can do beyond the walls around it wants a person's word, once for each CID:
//
//	serve             a daemon starts it when a client asks, and it runs commands, reaches the network or sends prompts elsewhere
//	schedule, webhook the clock or other services start it, whatever it does: an agent may have written the file
//	remember          a daemon starts it, and its agents change the memory of the user, which other workflows begin with, unasked
//	notify            notifications about its runs go where it says; until then they do not, and the rest of it is as ever
//	unconfined        a role says "sandbox: off" in a definition with an agent, under wf run and a daemon alike
//
// Who runs a file with wf run gives the word for the rest of it by that.

// powersOf are the powers that a definition needs to be served and run.
func powersOf(loaded *config.Loaded, p *lang.Program) []config.Power {
	var out []config.Power
	if reaches(loaded, p) {
		out = append(out, config.Serve)
	}
	if p.Workflow.Schedule != nil {
		out = append(out, config.Schedule)
	}
	if p.Workflow.Webhook != nil {
		out = append(out, config.Webhook)
	}
	if remembers(p) {
		out = append(out, config.Remember)
	}
	if unconfined(p) {
		out = append(out, config.Unconfined)
	}
	if len(p.Workflow.Notify) > 0 {
		out = append(out, config.Notify)
	}
	return out
}

// unconfined reports whether commands of a definition that would be confined are not: those of an agent,
// and those of run roles where the definition, or one that calls it, has an agent.
func unconfined(p *lang.Program) bool {
	agents := p.HasAgent()
	for x := range parts(p) {
		if agents && x.Sandbox == protocol.SandboxOff {
			return true
		}
	}
	return false
}

// remembers reports whether an agent of a definition changes the memory of the user without that a person is asked.
func remembers(p *lang.Program) bool {
	for x := range parts(p) {
		if x.Memory != nil && x.Memory.Scope == protocol.MemoryUser && slices.ContainsFunc(x.Approvals, func(a protocol.NamedTemplate) bool { return memory.Changes(a.Name) && tool.Said(a) == tool.Auto }) {
			return true
		}
	}
	return false
}

// reaches reports whether a definition reaches beyond the sandbox, this machine or its user's purse:
// by a command, an agent without walls, a tool of an MCP server, or a model that is no server of this machine.
func reaches(loaded *config.Loaded, p *lang.Program) bool {
	for x := range parts(p) {
		switch {
		case x.Action == protocol.ActRun, x.Sandbox == protocol.SandboxOff, reachesOut(x.Role), slices.ContainsFunc(x.Tools, ofServer):
			return true
		case x.Action != protocol.ActPrompt:
			continue
		}
		models := x.Model
		if len(models) == 0 {
			found, err := loaded.Resolve(x.Name, nil, nil, os.LookupEnv)
			if err != nil {
				continue // it cannot start without a model that the client names
			}
			models = found.Models
		}
		if slices.ContainsFunc(models, func(m string) bool { return !loaded.Local(m) }) {
			return true
		}
	}
	return false
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

// An Origin is where a definition comes from, as far as that is known.
type Origin struct {
	File      string // absolute, "" is not known
	Source    []byte // nil is not known
	Workspace string // in which it is to run, where File is not known
}

// Wanted are the powers that a definition needs and was not trusted with, as grants to be.
func (u *Setup) Wanted(p *lang.Program, o Origin) (out []config.Grant, err error) {
	wants, err := u.wants(p, o)
	for _, w := range wants {
		if !w.Trusted {
			out = append(out, w.Grant)
		}
	}
	return out, err
}

// wants are the powers that a definition needs, trusted or not.
func (u *Setup) wants(p *lang.Program, o Origin) ([]config.Want, error) {
	loaded, err := u.Config()
	if err != nil {
		return nil, err
	}
	powers := powersOf(loaded, p)
	if len(powers) == 0 {
		return nil, nil
	}
	g, err := u.Grants()
	if err != nil {
		return nil, err
	}
	x, err := grantOf(p, o)
	if err != nil {
		return nil, err
	}
	var out []config.Want
	for _, power := range powers {
		x := x
		x.Power = power
		has := g.Holds
		if power == config.Notify { // where notifications go is the same in every directory
			x.Dir, x.Digest = "", ""
			has = func(x config.Grant, _ string) (bool, error) { return g.Has(x.Power, x.CID) }
		}
		trusted, err := has(x, o.Workspace)
		if err != nil {
			return nil, err
		}
		out = append(out, config.Want{Grant: x, Trusted: trusted})
	}
	return out, nil
}

// grantOf is the grant of a definition, without a power.
func grantOf(p *lang.Program, o Origin) (x config.Grant, err error) {
	def, err := p.Block()
	if err != nil {
		return x, err
	}
	x = config.Grant{CID: def.Link, Name: p.Workflow.Name, File: o.File, Digest: digestOf(p, o.Source), Text: wholeSource(p, o.Source)}
	x.Dir, err = dirOf(o.File)
	return x, err
}

// dirOf is the directory of a file without links; "" of one that is not known.
func dirOf(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if errors.Is(err, fs.ErrNotExist) { // it is gone, and nothing that was trusted is there
		return filepath.Dir(file), nil
	}
	return dir, err
}

// digestOf is the digest of the texts of a definition and of its sub-workflows; "" where one is not known.
func digestOf(p *lang.Program, source []byte) string {
	if source == nil {
		return ""
	}
	sum := sha256.New()
	add := func(text []byte) { fmt.Fprintf(sum, "%d\n%s", len(text), text) }
	add(source)
	sources, seen := p.Sources(), map[protocol.Link]bool{}
	for x := range parts(p) {
		if x.of.Children[x.Workflow] == nil || seen[x.Workflow] {
			continue
		}
		seen[x.Workflow] = true
		text, known := sources[x.Workflow]
		if !known {
			return ""
		}
		add(text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
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
	for x := range parts(p) {
		child := x.of.Children[x.Workflow]
		if child == nil || seen[x.Workflow] {
			continue
		}
		seen[x.Workflow] = true
		text := string(sources[x.Workflow])
		if text == "" { // only its canonical form is known
			text = strings.Join(Acts(child), "\n") + "\n"
		}
		fmt.Fprintf(&b, "\n# sub-workflow %s\n%s", child.Workflow.Name, text)
	}
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
			config.Remember:   "its agents change your memory, which other workflows begin with, unasked: a daemon starts it only once a person has looked at it",
			config.Webhook:    "its webhook waits for trust: an event starts it only once a person has looked at it",
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

// Acts is what a workflow and its sub-workflows do beyond what they say: their commands, with all that decides what these do, and their
// agents, with what they are told.
func Acts(p *lang.Program) []string {
	out := []string{}
	for x := range parts(p) {
		if text := actOf(x.Role); text != "" {
			out = append(out, x.path+x.Name+": "+text)
		}
	}
	return out
}

// actOf is what a role does, in lines; "" is nothing that acts.
func actOf(r *protocol.Role) string {
	var lines []string
	add := func(name, text string) {
		if text != "" {
			lines = append(lines, name+": "+text)
		}
	}
	switch {
	case r.Action == protocol.ActRun:
		lines = append(lines, strings.TrimRight(r.Run, "\n"))
	case r.Action == protocol.ActPrompt && r.Sandbox == protocol.SandboxOff:
		lines = append(lines, "any command that its model writes, without a sandbox")
	case r.Action == protocol.ActPrompt:
		lines = append(lines, "an agent")
	default:
		return ""
	}
	for _, v := range r.Env {
		add("env "+v.Name, shownTemplate(v))
	}
	if r.Stdin != nil {
		add("stdin", r.Stdin.Text)
		add("stdin from", r.Stdin.File)
	}
	if r.Caching != nil {
		add("cache toolchain", strings.Join(r.Caching.Toolchain, "; "))
		add("cache env", strings.Join(r.Caching.Env, ", "))
	}
	add("dir", r.Dir)
	if r.Action == protocol.ActRun {
		add("sandbox", r.Sandbox)
	}
	if all, hosts := r.Reach(); all || len(hosts) > 0 {
		add("network", cmp.Or(strings.Join(hosts, ", "), r.Network))
	}
	if r.Action == protocol.ActPrompt {
		add("model", strings.Join(r.Model, ", "))
		add("tools", strings.Join(r.Tools, ", "))
		for _, a := range r.Approvals {
			add("tool "+a.Name, string(tool.Said(a)))
		}
		if r.Memory != nil {
			add("memory", cmp.Or(r.Memory.Scope, protocol.MemoryRole))
		}
		add("prompt", strings.TrimRight(r.Prompt, "\n"))
	}
	return strings.Join(lines, "\n")
}

// shownTemplate is a value of a definition as its author wrote it.
func shownTemplate(v protocol.NamedTemplate) string { return cmp.Or(v.Value, v.JSON) }

// actsBy is what a power lets a workflow do.
func actsBy(power config.Power, p *lang.Program) []string {
	if power != config.Notify {
		return Acts(p)
	}
	var out []string
	for _, s := range p.Workflow.Notify {
		out = append(out, "notify "+s.Name+": "+config.Where(s))
	}
	return out
}

// A part is a role of a workflow, or of one of its sub-workflows.
type part struct {
	*protocol.Role
	of   *lang.Program // the workflow that has it
	path string        // of that among the sub-workflows: the roles that call it, each with a slash behind; "" is no sub-workflow
}

// parts are the roles of a workflow in their order, those of a sub-workflow behind the role that calls it.
func parts(p *lang.Program) iter.Seq[part] { return partsOf(p, "") }

func partsOf(p *lang.Program, path string) iter.Seq[part] {
	return func(yield func(part) bool) {
		for i := range p.Workflow.Roles {
			role := &p.Workflow.Roles[i]
			if !yield(part{role, p, path}) {
				return
			}
			if child := p.Children[role.Workflow]; child != nil {
				for x := range partsOf(child, path+role.Name+"/") {
					if !yield(x) {
						return
					}
				}
			}
		}
	}
}
