package engine

import (
	"context"
	"errors"

	"wf/engine/rules"
	"wf/protocol"
)

// confines reports whether the command of a role is confined. Whatever runs in a workspace in which an
// agent may write could run what the agent wrote: so all commands of a run that has an agent are, before
// and after it alike.
func (d *driver) confines(role *protocol.Role) bool {
	switch {
	case role.Action != protocol.ActRun || role.Sandbox == protocol.SandboxOff:
		return false
	case role.Sandbox == protocol.SandboxOn:
		return true
	}
	return d.agents || d.e.ConfineAll
}

// agents reports whether a run has an agent: in itself, in a sub-workflow or in one that calls it.
func (e *Engine) agents(ctx context.Context, s *rules.State, depth int) (bool, error) {
	if s.Program().HasAgent() {
		return true, nil
	}
	if s.Info.Parent == nil {
		return false, nil
	}
	caller := s.Info.Parent.Run
	if depth > deepest {
		return false, inCircles(caller)
	}
	if has, ok := e.lib.agents.Load(caller); ok { // its definition never changes
		return has.(bool), nil
	}
	above, err := e.State(ctx, caller)
	if errors.Is(err, protocol.ErrUnknownRun) || errors.Is(err, protocol.ErrRunDeleted) {
		return true, nil // it came without its caller, which may have had one
	}
	if err != nil {
		return false, err
	}
	has, err := e.agents(ctx, above, depth+1)
	if err == nil {
		e.lib.agents.Store(caller, has)
	}
	return has, err
}
