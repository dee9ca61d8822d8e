package notify

import (
	"context"
	"slices"
	"strings"
	"time"

	"wf/agentkit/config"
	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// List is what is to be delivered in a store: to the sinks of the configs, and to those that have a journal besides.
// Without a store, s is nil.
func List(ctx context.Context, s *cas.Store, configured []Configured) (*api.Hooks, error) {
	out := &api.Hooks{Schema: "wf.hooks/v1", Sinks: []api.Hook{}}
	var names []string
	if s != nil {
		var err error
		if names, err = s.Sinks(ctx); err != nil {
			return nil, err
		}
	}
	for _, c := range configured {
		h := api.Hook{Name: c.Journal, To: config.Where(c.Sink), On: c.On, Workflows: c.Workflows}
		if err := fill(ctx, s, &h); err != nil {
			return nil, err
		}
		out.Sinks = append(out.Sinks, h)
	}
	for _, name := range names {
		if slices.ContainsFunc(configured, func(c Configured) bool { return c.Journal == name }) {
			continue
		}
		h := api.Hook{Name: name}
		if err := fill(ctx, s, &h); err != nil {
			return nil, err
		}
		out.Sinks = append(out.Sinks, h)
	}
	return out, nil
}

func fill(ctx context.Context, s *cas.Store, h *api.Hook) error {
	h.Deliveries = []api.Delivery{}
	if s == nil {
		return nil
	}
	j, err := openJournal(ctx, s, h.Name)
	if err != nil {
		return err
	}
	for _, x := range slices.Concat(j.st.Open(), j.st.Dead()) {
		d := api.Delivery{ID: x.ID, Run: x.Run, Seq: x.Seq, Step: x.Step, On: x.On, Reminder: x.Reminder, Escalated: x.Escalated, Due: timeOf(x.At), Dead: x.Dead, Attempts: x.Attempts, Error: x.Error}
		if !x.Dead && x.Next > 0 {
			d.Next = new(timeOf(x.Next))
		}
		h.Deliveries = append(h.Deliveries, d)
	}
	h.Delivered, h.Waiting, h.Dead = j.st.delivered, j.st.open, len(j.st.dead)
	return nil
}

func timeOf(us int64) api.Time { return time.UnixMicro(us).UTC().Format(time.RFC3339Nano) }

// Retry has deliveries attempted at once, with all their time before them: those whose ids begin as one of ids, or
// all that failed. It gives the ids; one that fits nothing is an error, and nothing is done.
func Retry(ctx context.Context, s *cas.Store, now time.Time, by string, all bool, ids []string) (revived []string, err error) {
	names, err := s.Sinks(ctx)
	if err != nil {
		return nil, err
	}
	fits := map[*journal][]string{}
	missing := slices.Clone(ids)
	for _, name := range names {
		j, err := openJournal(ctx, s, name)
		if err != nil {
			return nil, err
		}
		for _, x := range slices.Concat(j.st.Open(), j.st.Dead()) {
			named := slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(x.ID, id) })
			missing = slices.DeleteFunc(missing, func(id string) bool { return strings.HasPrefix(x.ID, id) })
			if named || all && (x.Dead || x.Attempts > 0) {
				fits[j] = append(fits[j], x.ID)
			}
		}
	}
	if len(missing) > 0 {
		return nil, protocol.ErrNotFound.With("wf hook ls lists what waits and what is dead", "no delivery %s waits or is dead", strings.Join(missing, ", "))
	}
	for j, list := range fits {
		err := j.append(ctx, now, func(*State) []cas.Draft {
			return []cas.Draft{{Data: protocol.DeliveryRevived{IDs: list, By: by}}}
		})
		if err != nil {
			return revived, err
		}
		revived = append(revived, list...)
	}
	slices.Sort(revived)
	return revived, nil
}

// Usable says what keeps a sink from working on this machine; "" is nothing.
func Usable(s protocol.Sink, getenv func(string) (string, bool)) string {
	if s.Secret != "" {
		if _, ok := getenv(s.Secret); !ok {
			return "the secret " + s.Secret + " is not set in this environment"
		}
	}
	if s.Desktop {
		if _, err := desktopPath(); err != nil {
			return err.Error()
		}
	}
	return ""
}
