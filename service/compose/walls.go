package compose

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"wf/agentkit/config"
	"wf/agentkit/sandbox"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
	"wf/roles/workspace"
)

// ErrUnconfined is the error of a run with commands to be confined, on a machine that cannot.
var ErrUnconfined = &protocol.Error{Code: "sandbox_unavailable", Message: "commands cannot be confined on this machine", Hint: "wf doctor says what is missing"}

// errUnheld is the error of a run with roles that want a network which this machine cannot give.
var errUnheld = &protocol.Error{Code: ErrUnconfined.Code, Message: "commands cannot have the network that their roles say", Hint: ErrUnconfined.Hint}

// walls confine the commands of run roles, as those of agents are.
type walls struct{ u *Setup }

// container are the walls of a machine that its user calls a sandbox itself.
var container = roles.Bare{Name: sandbox.Container}

func (w walls) Tier(c roles.Command) protocol.SandboxTier {
	if w.bare(c) {
		return container.Tier(c)
	}
	tier := sandbox.Probe()
	return protocol.SandboxTier{Tier: tier.Name, ABI: tier.ABI}
}

func (w walls) Run(ctx context.Context, c roles.Command) (int, error) {
	if w.bare(c) {
		return container.Run(ctx, c)
	}
	grants, err := w.u.Confine()
	if err != nil {
		return 0, err
	}
	if c.Sealed && buildsGo(c.Workspace) {
		w.u.seedReused(ctx)
	}
	return sandbox.Run(ctx, policyOf(c, grants), []string{"sh", "-c", c.Line}, c.Stdout, c.Stderr)
}

// Hides tells which files of the user's own a command may read besides.
func (w walls) Hides() (string, error) {
	tier := sandbox.Probe()
	if !tier.Namespaces {
		return "", fmt.Errorf("the sandbox of this machine (%s) does not hide files", tier.Name)
	}
	grants, err := w.u.Confine()
	if err != nil {
		return "", err
	}
	return strings.Join(slices.Sorted(slices.Values(grants.Read)), "\n"), nil
}

// Lends are the settings that a confined command is given.
func (w walls) Lends(c roles.Command) ([]protocol.MemoPart, error) {
	if w.bare(c) {
		return nil, nil
	}
	settings, err := policyOf(c, sandbox.Grants{}).Settings()
	var out []protocol.MemoPart
	for _, s := range settings {
		out = append(out, protocol.NewMemoPart(s.Name, []byte(s.Value)))
	}
	return out, err
}

var _ roles.Layering = walls{}

// Overlay mounts layers as commands find them.
func (w walls) Overlay(lower, upper, work string) (*workspace.View, error) {
	return sandbox.Overlay(lower, upper, work)
}

// forget removes what the commands of a run keep until it ends.
func (u *Setup) forget(run protocol.RunID) {
	if err := sandbox.Forget(run); err != nil {
		u.Warn(err)
	}
}

// bare reports whether a command runs as it is, since the machine is a sandbox itself. Walls that hold what
// the command's role says are put up all the same.
func (w walls) bare(c roles.Command) bool {
	return w.u.Inside() && sandbox.Probe().Lacks(sandbox.Policy{Network: c.Network, Hosts: c.Hosts}) != ""
}

func policyOf(c roles.Command, grants sandbox.Grants) sandbox.Policy {
	grants.Read = append(slices.Clip(grants.Read), c.Turn)
	if c.Sealed {
		grants.Devices, grants.SSHAgent = nil, false
	}
	if c.Artifacts != "" {
		grants.Read = append(grants.Read, c.Artifacts)
	}
	return sandbox.Policy{Workspace: c.Workspace, At: c.At, Private: c.Private, Trust: c.Trust, Plain: c.Sealed, Reused: c.Sealed, Dir: c.Dir, Network: c.Network, Hosts: c.Hosts, Met: c.Hit, Appeared: c.Appeared, Environ: c.Env, Stdin: c.Stdin,
		Grants: grants, Grace: c.Grace}
}

// Met names the keys that open the walls.
func (w walls) Met(c roles.Command, output string) string {
	if w.bare(c) || !sandbox.MetWall(output) {
		return ""
	}
	return sandbox.Probe().Met(policyOf(c, sandbox.Grants{}))
}

// Inside reports whether the user said that this machine is a sandbox, or wf itself wrote all that runs.
func (u *Setup) Inside() bool {
	if u.Ours {
		return true
	}
	c, err := u.Config()
	return err == nil && c.ContainerIsSandbox
}

// confinesAll reports whether a config confines the commands of all workflows. An error of reading it
// is reported where the run is admitted.
func (u *Setup) confinesAll() bool {
	c, err := u.Config()
	return err == nil && c.Defaults.Sandbox == protocol.SandboxOn
}

// unconfinable refuses a run with commands to be confined where nothing can confine them, or not as
// their roles say. The machine is probed, which starts a process, only for a run that has such commands.
func unconfinable(probe func() sandbox.Tier, loaded *config.Loaded, c engine.Candidate) error {
	all := c.Program.HasAgent() || loaded.Defaults.Sandbox == protocol.SandboxOn
	grants := sandbox.Grants{SSHAgent: slices.Contains(loaded.Sandbox.Sockets, config.SSHAgent)}
	var tier sandbox.Tier
	var whys []string
	names := map[string][]string{} // by why
	for x := range confinedRoles(c.Program, all) {
		if tier = probe(); !tier.Holds && x.Action == protocol.ActPrompt {
			continue // its shell refuses by itself, the rest of its work needs no walls
		}
		network, hosts := x.Reach()
		why := tier.Lacks(sandbox.Policy{Network: network, Hosts: hosts, Grants: grants})
		if why == "" {
			continue
		}
		if names[why] == nil {
			whys = append(whys, why)
		}
		names[why] = append(names[why], x.path+x.Name)
	}
	if len(whys) == 0 {
		return nil
	}
	if !tier.Holds {
		return ErrUnconfined.With("use a kernel with Landlock and user namespaces (wf doctor says what is missing); or say  sandbox: off  on the roles, "+
			"which then run, as you, whatever agents write here; or, in a container with nothing of yours in it, put  container_is_sandbox: true  into your own config",
			"the commands of %s are to be confined, since an agent works beside them, and this machine cannot: %s", strings.Join(names[whys[0]], ", "), whys[0])
	}
	for i, why := range whys {
		whys[i] = fmt.Sprintf("the commands of %s: %s", strings.Join(names[why], ", "), why)
	}
	return errUnheld.With("allow user namespaces (wf doctor says how); or say  network: allow  on the roles; their commands then reach all of this machine's network "+
		"and are confined in files; or, in a container with nothing of yours in it, put  container_is_sandbox: true  into your own config",
		"this machine cannot give commands the network that their roles say (%s)\n  %s", strings.Join(tier.Reasons, "; "), strings.Join(whys, "\n  "))
}

// confinedRoles are the roles with confined commands, those of sub-workflows included: run roles, and
// agents with a shell. all confines run roles that say nothing.
func confinedRoles(p *lang.Program, all bool) iter.Seq[part] {
	return func(yield func(part) bool) {
		for x := range parts(p) {
			command := x.Action == protocol.ActRun && (all || x.Sandbox == protocol.SandboxOn)
			shell := x.Action == protocol.ActPrompt && slices.Contains(x.Tools, "shell")
			if (command || shell) && x.Sandbox != protocol.SandboxOff && !yield(x) {
				return
			}
		}
	}
}
