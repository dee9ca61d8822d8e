package agentkit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/mcp"
	"wf/agentkit/memory"
	"wf/agentkit/prompt"
	"wf/agentkit/sandbox"
	"wf/agentkit/task"
	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles"
)

// Agent performs the visits of roles with a prompt. It implements roles.Performer and
// roles.Preparer. The zero value works: models by the environment, the tools of package tool,
// their own policies.
type Agent struct {
	// Models opens a model by its name as the workflow writes it; dir is where the definition
	// lies, against which script files are resolved. nil is Standard().Open. An error suspends
	// the run unless a further model of the role can be opened.
	Models func(name, dir string) (llms.Model, error)

	// Default names the models of a role that names none itself; an error suspends the run.
	// nil knows none.
	Default func(role string) ([]string, error)

	// Tools are offered besides those of package tool; one of the same name takes its place.
	Tools []tool.Tool

	// MCP gives the servers that offer tools, as a config names them, for programs that start in the
	// directory dir of the workspace root. One of the same name that the workflow declares takes its place.
	// nil gives none.
	MCP func(root, dir string) ([]protocol.MCPServer, error)

	// Trusted tells whether a server is trusted where its program lies, see mcp.Pool; nil trusts those that MCP gives in the same words, and no file of the workspace.
	Trusted func(s protocol.MCPServer, at mcp.Place) error

	// Allowed tells whether the user allowed a server that the workflow declares by its name, see mcp.Pool.
	Allowed func(name string) bool

	// Offers keeps what servers offer, so that they are started once for all items of a fan-out;
	// nil asks them for each.
	Offers *mcp.Offers

	// Strange is told of servers that say what is no message of their protocol, see mcp.Pool; nil tells nobody.
	Strange func(server string, err error)

	// Withheld keeps arguments in which a key was hidden while a person is asked for their call;
	// with nil such a call is lost once its visit waits, and the model gets a message that says so.
	Withheld *Withheld

	// Seal is the key for digests of what is hidden. Without it digests of one process mean nothing to
	// another, where a person is asked again.
	Seal []byte

	// Memory opens the memory of a role that has one. Its tools are offered to the role besides
	// those it names, what it holds enters at the start of a visit, and the model reflects on
	// it before a compaction. The giver closes it. nil knows none.
	Memory func(ctx context.Context, turn protocol.Turn) (*memory.Store, error)

	// Secret looks up the value of a declared secret; nil is os.LookupEnv.
	Secret func(name string) (string, bool)

	// Confine gives what a config lets commands do beside the system and the workspace, and their
	// limits. An error suspends the run. nil gives nothing.
	Confine func() (sandbox.Grants, error)

	// Inside reports that this machine is a sandbox itself: where commands cannot be confined as their role says they run
	// as they are, and unasked. nil is that it is none.
	Inside func() bool

	// Window is how many tokens a model can read, by its name; 0 is not known. nil knows none.
	Window func(name string) int

	// Patience is for how long a call waits for the provider of a model, by its name, while that is down or busy; ok is
	// that its config says so. The role's own word goes before it, and Patient before both. nil says nothing.
	Patience func(name string) (d time.Duration, ok bool)
	Patient  *time.Duration
}

// Prepare fixes the tool list and the dynamic text of a visit. A visit that goes on with a
// conversation keeps the tools that were recorded for it, whatever the role says now, unless
// it became a task or ceases to be one.
func (a Agent) Prepare(ctx context.Context, turn protocol.Turn) (p roles.Preparation, err error) {
	if emit := roles.EmitOf(ctx); emit != nil {
		var h *holds
		ctx, h = watched(ctx, emit)
		defer func() { err = h.join(err) }()
	}
	list, isTask := turn.History.Tools, turn.Role.Context == protocol.ContextTask
	if list == "" && turn.Visit <= 1 || task.Offered(list) != isTask {
		tools, err := a.named(ctx, turn)
		if err != nil {
			return roles.Preparation{}, fmt.Errorf("role %s: %w", turn.Role.Name, err)
		}
		if isTask {
			tools = append(tools, taskTools(turn.Role.Task)...)
		}
		if list, err = tool.List(tools); err != nil {
			return roles.Preparation{}, fmt.Errorf("tools of role %s: %w", turn.Role.Name, err)
		}
	}
	inject, err := dynamic(ctx, turn)
	if err != nil {
		return roles.Preparation{}, fmt.Errorf("dynamic text of role %s: %w", turn.Role.Name, err)
	}
	remembered, err := a.remembered(ctx, turn)
	if err != nil {
		err = fmt.Errorf("memory of role %s: %w", turn.Role.Name, err)
		if hint := protocol.HintOf(err); hint != "" {
			err = fmt.Errorf("%w. Fixes: %s", err, hint)
		}
		return roles.Preparation{}, err
	}
	inject = prompt.Join(inject, remembered)
	return roles.Preparation{Tools: list, Inject: roles.NewRedactor(a.secrets(turn)).String(inject)}, nil
}

// Perform carries out one attempt of a visit, from where its transcript ends.
func (a Agent) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (c protocol.Conclusion, err error) {
	v, err := a.begin(turn, emit)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	defer func() {
		if left := v.servers.Close(); left != nil { // nothing goes on behind that
			c, err = protocol.Conclusion{}, errors.Join(left, err)
		}
	}()
	if err := v.replay(turn.Transcript); err != nil {
		return protocol.Conclusion{}, fmt.Errorf("transcript of %s: %w", turn.Step, err)
	}
	if kept, ok := roles.HandoverOf(ctx).Take().(*mcp.Pool); ok {
		if err := v.servers.TakeOver(kept); err != nil {
			return protocol.Conclusion{}, err
		}
	}
	ctx, v.holds = watched(ctx, emit)
	if err := v.openTask(ctx); err != nil {
		return protocol.Conclusion{}, v.holds.join(err)
	}
	c, err = v.run(ctx)
	return c, v.holds.join(err)
}

// tools lists what can be offered; of two of one name the Agent's own.
func (a Agent) tools() []tool.Tool { return byName(a.Tools, tool.All()) }

var _ roles.Layered = Agent{}

// Layered reports whether a role has no tools but those of this package: what a program that embeds wf brings opens files as it likes,
// and a server may run outside of walls.
func (a Agent) Layered(turn protocol.Turn) bool {
	return !slices.ContainsFunc(turn.Role.Tools, func(name string) bool {
		return strings.HasPrefix(name, mcp.Prefix) || slices.ContainsFunc(a.Tools, func(t tool.Tool) bool { return t.Name == name })
	})
}

// byName is tools sorted by name, of two of one name the first.
func byName(lists ...[]tool.Tool) []tool.Tool {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(x, y tool.Tool) int { return strings.Compare(x.Name, y.Name) })
	return slices.CompactFunc(all, func(x, y tool.Tool) bool { return x.Name == y.Name })
}

// named finds the tools of a role. Servers are started for it; the visit goes on with them, or they are ended.
func (a Agent) named(ctx context.Context, turn protocol.Turn) (_ []tool.Tool, err error) {
	servers, err := a.servers(turn)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil || !servers.Connected() || !roles.HandoverOf(ctx).Put(servers) {
			err = errors.Join(servers.Close(), err)
		}
	}()
	var own, served []string
	for _, name := range turn.Role.Tools {
		if slices.Contains(memory.Names, name) && !slices.ContainsFunc(a.Tools, func(t tool.Tool) bool { return t.Name == name }) {
			if turn.Role.Memory == nil {
				return nil, fmt.Errorf("the tool %s needs a memory: give the role memory: true", name)
			}
			continue // it comes with the memory
		}
		if _, _, ok := mcp.Split(name); !ok {
			own = append(own, name)
			continue
		}
		served = append(served, name)
	}
	theirs, err := a.Offers.Tools(ctx, turn.Run, turn.Role.Name, servers, served)
	if err != nil {
		return nil, err
	}
	all, err := tool.Named(own, a.tools())
	if err != nil {
		return nil, err
	}
	return byName(all, theirs, a.memoryTools(turn, nil)), nil
}

// servers are those of the workflow and of the config. The config is asked only where a tool of
// a server is named.
func (a Agent) servers(turn protocol.Turn) (*mcp.Pool, error) {
	p := &mcp.Pool{Servers: slices.Clone(turn.MCP), Root: turn.Workspace, At: turn.At, Private: turn.Private, Run: turn.Run, Workflow: turn.Workflow,
		Dir: filepath.Join(turn.Workspace, turn.Role.Dir), Secret: a.Secret,
		Trusted: a.Trusted, Allowed: a.Allowed, Confine: a.Confine, Inside: a.Inside, Strange: a.Strange}
	uses := func(name string) bool { return strings.HasPrefix(name, mcp.Prefix) }
	if a.MCP == nil || !slices.ContainsFunc(turn.Role.Tools, uses) {
		return p, nil
	}
	listed, err := a.MCP(p.Root, p.Dir)
	if err != nil {
		return nil, err
	}
	for _, s := range listed {
		if !slices.ContainsFunc(turn.MCP, func(own protocol.MCPServer) bool { return own.Name == s.Name }) {
			p.Servers, p.Foreign = append(p.Servers, s), append(p.Foreign, s.Name)
		}
	}
	if p.Trusted == nil {
		p.Trusted = func(s protocol.MCPServer, at mcp.Place) error {
			same := func(l protocol.MCPServer) bool { return reflect.DeepEqual(l, s) }
			if len(at.Files) == 0 && slices.ContainsFunc(listed, same) {
				return nil
			}
			return mcp.ErrUntrusted
		}
	}
	return p, nil
}

func (a Agent) open(name, dir string) (llms.Model, error) {
	if a.Models != nil {
		return a.Models(name, dir)
	}
	return Standard().Open(name, dir)
}

// begin builds P_k and what the tools need.
func (a Agent) begin(turn protocol.Turn, emit roles.Emit) (*visit, error) {
	v := &visit{agent: &a, turn: &turn, emit: emit, attempt: newAttempt()}
	models, err := a.models(&turn)
	if err != nil {
		return nil, err
	}
	if v.Work, err = prompt.NewWork(&turn, models, a.Window); err != nil {
		return nil, err
	}
	if v.offer, err = offered(turn.History.Tools); err != nil {
		return nil, fmt.Errorf("recorded tools of %s: %w", turn.Step, err)
	}
	v.tools = map[string]tool.Tool{}
	for _, t := range a.tools() {
		if slices.ContainsFunc(v.offer, func(o protocol.Tool) bool { return o.Name == t.Name }) {
			v.tools[t.Name] = t
		}
	}
	for _, t := range a.memoryTools(turn, emit) {
		v.tools[t.Name] = t
	}
	if v.servers, err = a.servers(turn); err != nil {
		return nil, err
	}
	for _, o := range v.offer {
		if t, ok := v.servers.Recorded(o); ok {
			v.tools[o.Name] = t
		}
	}
	v.hidden = a.secrets(turn)
	maps.Copy(v.hidden, v.servers.Secrets())
	v.clean = roles.NewRedactor(v.hidden).String
	if v.workspace, err = v.place(a.Secret); err != nil {
		return nil, err
	}
	v.used, v.raw, v.lost, v.blocks = map[string]bool{}, map[string]string{}, map[string]bool{}, map[string]string{}
	v.masked, v.allows = map[string]string{}, maps.Clone(turn.Allowed)
	if v.allows == nil {
		v.allows = map[string]string{}
	}
	return v, nil
}

// secrets are the values of the declared secrets.
func (a Agent) secrets(turn protocol.Turn) map[string]string {
	values := map[string]string{}
	for _, name := range turn.Secrets {
		if value, ok := lookupSecret(a.Secret, name); ok {
			values[name] = value
		}
	}
	return values
}

func lookupSecret(lookup func(string) (string, bool), name string) (string, bool) {
	if lookup == nil {
		return os.LookupEnv(name)
	}
	return lookup(name)
}

// place is where the tools of the visit act.
func (v *visit) place(lookup func(string) (string, bool)) (tool.Workspace, error) {
	at := tool.Workspace{
		Dir: filepath.Join(v.turn.Workspace, v.turn.Role.Dir), Root: v.turn.Workspace, At: v.turn.At, Private: v.turn.Private, Trust: v.turn.Trust(), Clean: v.clean,
		Redact:  func() *roles.Redactor { return roles.NewRedactor(v.hidden) },
		Sandbox: v.turn.Role.Sandbox, TraceParent: v.turn.TraceParent,
	}
	at.Network, at.Hosts = v.turn.Role.Reach()
	if v.inside() {
		at.Sandbox = sandbox.Off
	}
	if v.agent.Confine != nil {
		var err error
		if at.Grants, err = v.agent.Confine(); err != nil {
			return at, err
		}
	}
	if at.Artifacts = v.turn.Artifacts; at.Artifacts != "" {
		at.Environ = append(at.Environ, roles.ArtifactsVar+"="+at.Artifacts)
		at.Grants.Read = append(slices.Clip(at.Grants.Read), at.Artifacts)
	}
	if v.turn.TraceParent != "" {
		at.Environ = append(at.Environ, "TRACEPARENT="+v.turn.TraceParent)
	}
	var unset []string
	for _, name := range slices.Sorted(maps.Keys(v.turn.Env)) {
		value, missing := protocol.ExpandSecrets(v.turn.Env[name], func(secret string) (string, bool) {
			return lookupSecret(lookup, secret)
		})
		unset = append(unset, missing...)
		at.Environ = append(at.Environ, name+"="+value)
	}
	if slices.Sort(unset); len(unset) > 0 {
		return at, &protocol.Failure{
			ErrorInfo: protocol.ErrorInfo{Code: "secret_missing", Phase: "env",
				Message: fmt.Sprintf("the secret %s is not set: export it, then wf resume", strings.Join(slices.Compact(unset), ", "))},
			Suspend: true, Err: protocol.ErrModel,
		}
	}
	return at, nil
}
