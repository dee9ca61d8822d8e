package main

import (
	"context"
	"os"
	"os/user"
	"strings"

	"wf/agentkit"
	"wf/agentkit/prompt"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// newEngine joins the engine with what performs the steps. watch may be nil.
func (a *app) newEngine(s *cas.Store, watch func(engine.Notice)) *engine.Engine {
	agent := agentkit.Agent{Models: a.openModel, Default: a.defaultModels, Window: a.window, MCP: a.servers, Offers: &a.offers, Withheld: &a.withheld, Seal: a.sealFor("calls"), Confine: a.confine, Inside: a.inside, Trusted: a.trustsServer, Allowed: a.allowsServer, Memory: a.agentMemory(s)}
	e := &engine.Engine{
		Store:   s,
		Version: version(),
		Watch:   a.keepTasks(s, watch),
		Price:   a.price,
		Warn:    a.warn,
		Admit:   a.admit,
		Pins:    a.pins(s),

		ConfineAll: a.confinesAll(),

		Performers: map[protocol.Action]roles.Performer{
			protocol.ActPrompt: agent,
			protocol.ActRun:    &roles.Run{Messages: prompt.BuildMessages, Walls: walls{a}},
			protocol.ActAsk:    roles.Ask{},
			protocol.ActWait:   roles.Wait{},
			protocol.ActSet:    roles.Set{},
		},
	}
	e.Performers[protocol.ActWorkflow] = agentkit.Template{Agent: agent, Child: e.SubWorkflow()}
	return e
}

// warn tells the user of what went wrong without harm.
func (a *app) warn(err error) { a.progress("warning: %s", messageOf(err)) }

// whoami is who starts, answers and cancels: the name of the user.
func whoami() string {
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// withRun opens the store and finds a run in it.
func (a *app) withRun(ctx context.Context, arg string, f func(*cas.Store, protocol.RunID) error) error {
	return a.withStore(ctx, func(s *cas.Store) error {
		run, err := a.resolveRun(ctx, s, arg)
		if err != nil {
			return err
		}
		return f(s, run)
	})
}

// note keeps the heads of runs that this command moved outside of the store, so that a store
// put back to an older copy is found out. Runs that came from elsewhere stay so. Where that cannot be done the run is none the worse:
// the user is told, and wf verify lists it as not proven.
func (a *app) note(ctx context.Context, s *cas.Store, runs ...protocol.RunID) {
	if err := a.pins(s).Note(ctx, runs...); err != nil {
		a.progress("warning: the newest heads were not noted outside of the store: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// pins tell the runs of this user in a store from those that came from elsewhere.
func (a *app) pins(s *cas.Store) *cas.Pins {
	p, _ := a.pinned.LoadOrStore(s, cas.NewPins(s, cas.StateDir(os.Getenv)))
	return p.(*cas.Pins)
}
