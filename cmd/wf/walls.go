package main

import (
	"context"
	"fmt"
	"strings"

	"wf/agentkit/config"
	"wf/agentkit/sandbox"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

// errUnconfined is a run whose commands are to be confined where nothing can.
var errUnconfined = &protocol.Error{Code: "sandbox_unavailable", Message: "commands cannot be confined on this machine", Hint: "wf doctor says what is missing"}

// walls confine the commands of run roles, as those of agents are.
type walls struct{ a *app }

// container are the walls of a machine that its user calls a sandbox itself.
var container = roles.Bare{Name: sandbox.Container}

func (w walls) Tier() protocol.SandboxTier {
	if w.a.inContainer() {
		return container.Tier()
	}
	tier := sandbox.Probe()
	return protocol.SandboxTier{Tier: tier.Name, ABI: tier.ABI}
}

func (w walls) Run(ctx context.Context, c roles.Command) (int, error) {
	if w.a.inContainer() {
		return container.Run(ctx, c)
	}
	read, limits, err := w.a.confine()
	if err != nil {
		return 0, err
	}
	return sandbox.Run(ctx, policyOf(c, read, limits), []string{"sh", "-c", c.Line}, c.Stdout, c.Stderr)
}

func policyOf(c roles.Command, read []string, limits sandbox.Limits) sandbox.Policy {
	return sandbox.Policy{Workspace: c.Workspace, Dir: c.Dir, Network: c.Network, Hosts: c.Hosts, Met: c.Hit, Environ: c.Env, Stdin: c.Stdin,
		Read: append(read, c.Stdin.Name()), Limits: limits, Grace: c.Grace}
}

// Met names the keys that open the walls.
func (w walls) Met(c roles.Command, output string) string {
	if w.a.inContainer() || !sandbox.MetWall(output) {
		return ""
	}
	return sandbox.Probe().Describe(policyOf(c, nil, sandbox.Limits{})) + " if it met a wall: network: allow or sandbox: off on the role opens it, " +
		"and so does sandbox: {read: [PATH]} in a config; what it needs of the environment is written under env"
}

// inContainer reports whether commands run as they are, since the user said that the machine is a
// sandbox or wf itself wrote all that runs. Walls that hold are put up all the same.
func (a *app) inContainer() bool { return !sandbox.Probe().Holds && a.inside() }

func (a *app) inside() bool {
	if a.ours {
		return true
	}
	c, err := a.config()
	return err == nil && c.ContainerIsSandbox
}

// confinesAll reports whether a config confines the commands of all workflows. One that cannot be read
// is told where the run is admitted.
func (a *app) confinesAll() bool {
	c, err := a.config()
	return err == nil && c.Defaults.Sandbox == protocol.SandboxOn
}

// unconfinable refuses a run whose commands are to be confined where nothing can confine them.
func unconfinable(tier sandbox.Tier, loaded *config.Loaded, c engine.Candidate) error {
	if tier.Holds {
		return nil
	}
	names := confinedRoles(c.Program, "", c.Program.HasAgent() || loaded.Defaults.Sandbox == protocol.SandboxOn)
	if len(names) == 0 {
		return nil
	}
	return fail(errUnconfined, "use a kernel with Landlock and user namespaces (wf doctor says what is missing); or say  sandbox: off  on the roles, "+
		"which then run, as you, whatever agents write here; or, in a container with nothing of yours in it, put  container_is_sandbox: true  into your own config",
		"the commands of %s are to be confined, since an agent works beside them, and this machine cannot: %s", strings.Join(names, ", "), strings.Join(tier.Reasons, "; "))
}

// confinedRoles are the run roles whose commands are confined, those of sub-workflows included.
func confinedRoles(p *lang.Program, path string, all bool) []string {
	var out []string
	for i := range p.Workflow.Roles {
		role := &p.Workflow.Roles[i]
		if role.Action == protocol.ActRun && role.Sandbox != protocol.SandboxOff && (all || role.Sandbox == protocol.SandboxOn) {
			out = append(out, path+role.Name)
		}
		if child := p.Children[role.Workflow]; child != nil {
			out = append(out, confinedRoles(child, fmt.Sprintf("%s%s/", path, role.Name), all)...)
		}
	}
	return out
}
