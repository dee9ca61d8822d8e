package compose

import (
	"context"
	"os"
	"os/user"
	"strings"

	"wf/agentkit"
	"wf/agentkit/prompt"
	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// newEngine joins the engine with what performs the steps. watch may be nil.
func (u *Setup) Engine(s *cas.Store, watch func(api.Update)) *engine.Engine {
	agent := agentkit.Agent{Models: u.OpenModel, Default: u.defaultModels, Window: u.Window, MCP: u.servers, Offers: &u.offers, Withheld: &u.withheld, Seal: u.sealFor("calls"), Confine: u.Confine, Inside: u.Inside, Trusted: u.trustsServer, Allowed: u.allowsServer, Memory: u.AgentMemory(s)}
	e := &engine.Engine{
		Store:   s,
		Version: u.Version,
		Watch:   u.keepTasks(s, watch),
		Price:   u.price,
		Warn:    u.Warn,
		Admit:   u.admit,
		Pins:    u.Pins(s),

		ConfineAll: u.confinesAll(),

		Performers: map[protocol.Action]roles.Performer{
			protocol.ActPrompt: agent,
			protocol.ActRun:    &roles.Run{Messages: prompt.BuildMessages, Walls: walls{u}},
			protocol.ActAsk:    roles.Ask{},
			protocol.ActWait:   roles.Wait{},
			protocol.ActSet:    roles.Set{},
		},
	}
	e.Performers[protocol.ActWorkflow] = agentkit.Template{Agent: agent, Child: e.SubWorkflow()}
	return e
}

// User is who starts, answers and cancels: the name of the user.
func User() string {
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// Note keeps the heads of runs that this command moved outside of the store, so that a store
// put back to an older copy is found out. Runs that came from elsewhere stay so. Where that cannot be done the run is none the worse:
// the user is told, and wf verify lists it as not proven.
func (u *Setup) Note(ctx context.Context, s *cas.Store, runs ...protocol.RunID) {
	if err := u.Pins(s).Note(ctx, runs...); err != nil {
		u.warnf("the newest heads were not noted outside of the store: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// Pins tell the runs of this user in a store from those that came from elsewhere.
func (u *Setup) Pins(s *cas.Store) *cas.Pins {
	p, _ := u.pinned.LoadOrStore(s, cas.NewPins(s, cas.StateDir(os.Getenv)))
	return p.(*cas.Pins)
}
