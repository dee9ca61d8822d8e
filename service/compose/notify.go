package compose

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"wf/agentkit/config"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/service/notify"
	"wf/store"
)

// Notifier delivers the notifications of a store, by the configs and the workflows that are trusted with it.
func (u *Setup) Notifier(s store.Store, e *engine.Engine, log *slog.Logger) (*notify.Deliverer, error) {
	all, err := u.Sinks()
	return &notify.Deliverer{Store: s, Engine: e, Sinks: all, Trusts: u.trustsNotify, Walls: walls{u}, Log: log}, err
}

// Sinks are those of the configs: the user's own, and the project's where it is trusted with them.
func (u *Setup) Sinks() (out []notify.Configured, err error) {
	loaded, err := u.Config()
	if err != nil {
		return nil, err
	}
	for _, from := range []struct {
		sinks []config.Sink
		name  func(string) string
	}{{loaded.UserSinks(), func(s string) string { return s }}, {loaded.ProjectSinks(), notify.ProjectSink}} {
		for _, x := range from.sinks {
			sink, err := x.Sink()
			if err != nil {
				return nil, err
			}
			out = append(out, notify.Configured{Sink: sink, Journal: from.name(x.Name), Workflows: x.Workflows})
		}
	}
	return out, nil
}

// trustsNotify reports whether notifications about runs of a program go where it says.
func (u *Setup) trustsNotify(p *lang.Program) (bool, error) {
	wanted, err := u.Wanted(p, Origin{})
	return err == nil && !slices.ContainsFunc(wanted, func(g config.Grant) bool { return g.Power == config.Notify }), err
}

// Untold says what keeps the notifications that a program names from being sent; "" is nothing.
func (u *Setup) Untold(p *lang.Program, file string) (string, error) {
	if len(p.Workflow.Notify) == 0 {
		return "", nil
	}
	trusted, err := u.trustsNotify(p)
	if trusted || err != nil {
		return "", err
	}
	return fmt.Sprintf("the notifications that %s names are not sent before  wf trust %s", p.Workflow.Name, protocol.ShellWord(file)), nil
}

// openSinks begins the journals of the sinks that a run notifies before it begins. Where that cannot be done the run
// is none the worse.
func (u *Setup) openSinks(s store.Store, p *lang.Program) {
	d, err := u.Notifier(s, nil, nil)
	if err == nil {
		err = d.Open(context.Background(), p)
	}
	if err != nil {
		u.Warn(fmt.Errorf("notifications about the run may be missing: %w", err))
	}
}

// admitTo admits a run to a store.
func (u *Setup) admitTo(s store.Store, c engine.Candidate) error {
	err := u.admit(c)
	if err == nil && (c.New && !c.Later || c.Fork) {
		u.openSinks(s, c.Program)
	}
	return err
}
