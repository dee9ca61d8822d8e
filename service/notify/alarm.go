package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"wf/cas"
	"wf/protocol"
)

// Alarm has the sinks of the configs notified of what became of a trigger, as far as they want that. It is recorded when Alarm
// returns, once however often it is told while it waits; Serve delivers it.
func (d *Deliverer) Alarm(ctx context.Context, a protocol.Alarm) error {
	for _, c := range d.Sinks {
		if !c.tells(a) {
			continue
		}
		id, err := d.alarmID(c.Journal, a)
		if err == nil {
			err = Open(ctx, d.Store, d.now(), []string{c.Journal})
		}
		if err != nil {
			return err
		}
		j, err := openJournal(ctx, d.Store, c.Journal)
		if err == nil {
			err = j.append(ctx, d.now(), func(st *State) []cas.Draft {
				if st.byID[id] != nil {
					return nil
				}
				return []cas.Draft{{Data: protocol.DeliveryDue{ID: id, On: protocol.OnTrigger, Trigger: &a}}}
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tells reports whether a sink is notified of what became of a trigger.
func (c Configured) tells(a protocol.Alarm) bool {
	return c.Wants(protocol.OnTrigger) && (len(c.Workflows) == 0 || slices.Contains(c.Workflows, a.Workflow))
}

// alarmID is the id of the notification of an alarm at a sink: by it a deliverer knows that this user's own daemon raised it.
func (d *Deliverer) alarmID(sink string, a protocol.Alarm) (string, error) {
	raw, err := protocol.CanonicalJSON(a)
	if err != nil {
		return "", err
	}
	var key []byte
	if d.Key != nil {
		if key, err = d.Key(); err != nil {
			return "", err
		}
	}
	h := hmac.New(sha256.New, key)
	h.Write(raw)
	return idOf("trigger", sink, hex.EncodeToString(h.Sum(nil))), nil
}

// aboutTrigger is the notification of an alarm, and the sink that it goes to.
func (d *Deliverer) aboutTrigger(_ context.Context, name string, x protocol.DeliveryDue) (s protocol.Sink, m *Message, err error) {
	a := *x.Trigger
	switch id, err := d.alarmID(name, a); {
	case err != nil:
		return s, nil, err
	case id != x.ID:
		return s, nil, errGone
	}
	i := slices.IndexFunc(d.Sinks, func(c Configured) bool { return c.Journal == name })
	if i < 0 || !d.Sinks[i].tells(a) {
		return s, nil, errors.New("the config no longer names the sink for this workflow, or is not trusted with it")
	}
	s = d.Sinks[i].Sink
	return s, &Message{Schema: Schema, ID: x.ID, Sink: name, On: x.On, Time: a.At, Workflow: a.Workflow, Status: protocol.RunStatus(a.State), Link: pageOf(s.Page, "workflows"),
		Trigger: a.Kind, File: a.File, Problem: brief(a.Problem), Fix: brief(a.Fix), workspace: d.Dir}, nil
}
