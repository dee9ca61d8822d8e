package notify

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"wf/agentkit/config"
	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// List is what is to be delivered in a store, and what was delivered last: to the sinks of the configs, and to those
// that have a journal besides. Without a store, s is nil.
func List(ctx context.Context, s Store, configured []Configured, q api.NotificationQuery) (*api.NotificationList, error) {
	out := &api.NotificationList{Schema: "wf.notifications/v1", Sinks: []api.Sink{}, Items: []api.Notification{}}
	for _, c := range configured {
		out.Sinks = append(out.Sinks, api.Sink{Name: c.Journal, To: config.Where(c.Sink), On: c.On, Workflows: c.Workflows})
	}
	if s == nil {
		return out, nil
	}
	names, err := cas.Sinks(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(out.Sinks, func(x api.Sink) bool { return x.Name == name }) {
			out.Sinks = append(out.Sinks, api.Sink{Name: name})
		}
	}
	var found []found
	for i := range out.Sinks {
		x := &out.Sinks[i]
		j, err := openJournal(ctx, s, x.Name)
		if err != nil {
			return nil, err
		}
		for _, d := range slices.Concat(j.st.Open(), j.st.Dead(), j.st.Done()) {
			if q.Run == "" || d.Run == q.Run {
				found = append(found, newFound(x.Name, d))
			}
		}
		x.Delivered, x.Waiting, x.Dead = j.st.delivered, j.st.open, len(j.st.dead)
	}
	return out, fill(out, found, q.Part)
}

// found is a delivery with the time by which it has its place in the list. One that is retried moves to its beginning.
type found struct {
	api.Notification
	at int64
}

func newFound(sink string, d Delivery) found {
	n := api.Notification{Sink: sink, Status: api.NotificationWaiting, Attempts: d.Attempts, Error: d.Error,
		Notified: api.Notified{ID: d.ID, Run: d.Run, Seq: d.Seq, Step: d.Step, On: d.On, Reminder: d.Reminder, Escalated: d.Escalated, Due: timeOf(d.At), Trigger: d.Trigger}}
	switch {
	case d.Done > 0:
		n.Status, n.Delivered = api.NotificationDelivered, new(timeOf(d.Done))
	case d.Dead:
		n.Status = api.NotificationDead
	case d.Next > 0:
		n.Next = new(timeOf(d.Next))
	}
	return found{n, d.At}
}

// newest orders deliveries, the newest first; of one time those of later events.
func newest(a, b found) int {
	return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.Run, b.Run), cmp.Compare(b.Seq, a.Seq), cmp.Compare(a.ID, b.ID))
}

// place is where the list goes on behind a delivery, whatever becomes of it meanwhile.
func (x found) place() string { return fmt.Sprintf("%d.%d.%s.%s", x.at, x.Seq, x.Run, x.ID) }

// placed is the opposite of place.
func placed(s string) (x found, ok bool) {
	parts := strings.SplitN(s, ".", 4)
	if len(parts) < 4 {
		return x, false
	}
	at, err := strconv.ParseInt(parts[0], 10, 64)
	seq, err2 := strconv.ParseInt(parts[1], 10, 64)
	x.at, x.Seq, x.Run, x.ID = at, protocol.Seq(seq), protocol.RunID(parts[2]), parts[3]
	return x, err == nil && err2 == nil
}

// fill takes a part of what was found.
func fill(out *api.NotificationList, all []found, p api.Part) error {
	protocol.Sort(all, newest)
	if p.After != "" {
		after, ok := placed(p.After)
		if !ok {
			return protocol.ErrUsage.With("read the list from its beginning", "%.100q is no place in the list of notifications", p.After)
		}
		all = slices.DeleteFunc(all, func(x found) bool { return newest(x, after) <= 0 })
	}
	bytes := 0
	for i, x := range all {
		more := len(x.ID) + len(x.Error) + len(x.Step)
		if p.Full(i, bytes, more) {
			out.Next = all[i-1].place()
			break
		}
		out.Items, bytes = append(out.Items, x.Notification), bytes+more
	}
	return nil
}

// Outline leaves of a list what callers other than the owner may see: of an address its host, of a command that it is
// one, and of what failed not what the receiver or the command said, which may quote either.
func Outline(l *api.NotificationList, configured []Configured) {
	for i := range l.Sinks {
		to := &l.Sinks[i].To
		if at := slices.IndexFunc(configured, func(c Configured) bool { return c.Journal == l.Sinks[i].Name }); at >= 0 {
			switch s := configured[at]; {
			case s.Command != "":
				*to = "a command"
			case s.Webhook != "":
				*to = ""
				if u, err := url.Parse(s.Webhook); err == nil {
					*to = u.Scheme + "://" + u.Host
				}
			}
		}
	}
	for i := range l.Items {
		e := &l.Items[i].Error
		for _, said := range []string{saidStatus, saidNothing, saidExit} {
			if strings.HasPrefix(*e, said) {
				*e, _, _ = strings.Cut(*e, ": ")
			}
		}
	}
}

func timeOf(us int64) api.Time { return time.UnixMicro(us).UTC().Format(time.RFC3339Nano) }

// Retry has deliveries attempted at once, with all their time before them: those whose ids begin as one of ids, or
// all that failed. It gives the ids; one that fits nothing is an error, and nothing is done.
func Retry(ctx context.Context, s Store, now time.Time, by string, all bool, ids []string) (revived []string, err error) {
	names, err := cas.Sinks(ctx, s)
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
