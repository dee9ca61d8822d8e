package api

import (
	"context"

	"wf/protocol"
)

// Notifications tells where notifications about runs went, and has them attempted again.
type Notifications interface {
	// Notifications lists deliveries of notifications, the newest first, with the sinks. Callers other than the owner
	// see no more of a sink than the host that it leads to.
	Notifications(ctx context.Context, q NotificationQuery) (*NotificationList, error)
	// RetryNotifications has deliveries attempted again at once, with all their time before them. An id that fits
	// nothing is an error wrapping protocol.ErrNotFound, and nothing is done. Over HTTP it needs scope admin.
	RetryNotifications(ctx context.Context, r RetryNotifications) (*NotificationsRetried, error)
}

// NotificationQuery says which deliveries are listed.
type NotificationQuery struct {
	Run protocol.RunID // those about this run; "" is all
	Part
}

// NotificationList is deliveries of notifications: wf.notifications/v1. Of those that went well each sink keeps the last 200.
type NotificationList struct {
	Schema string         `json:"schema"`
	Sinks  []Sink         `json:"sinks"`
	Items  []Notification `json:"items"`          // the newest first
	Next   string         `json:"next,omitempty"` // Part.After of those behind these; "" at the end
}

// Sink is where notifications go.
type Sink struct {
	Name      string            `json:"name"`                // of a project project/NAME, of a workflow workflow/WORKFLOW/NAME
	To        string            `json:"to,omitempty"`        // where they go; left out for one of a workflow, which says it
	On        []protocol.Moment `json:"on,omitempty"`        // none is all
	Workflows []string          `json:"workflows,omitempty"` // that it is for; none is all
	Delivered int64             `json:"delivered"`
	Waiting   int               `json:"waiting"`
	Dead      int               `json:"dead"`
}

// Notified is what a delivery is about.
type Notified struct {
	ID        string          `json:"id"`
	Run       protocol.RunID  `json:"run"` // "" of one about a trigger
	Seq       protocol.Seq    `json:"seq"` // of the event that it is about
	Step      string          `json:"step,omitempty"`
	On        protocol.Moment `json:"on"`
	Reminder  int             `json:"reminder,omitempty"`  // of waiting: n of the n-th reminder of a question
	Escalated int             `json:"escalated,omitempty"` // of waiting: n where a question was put to further people for the n-th time
	Due       Time            `json:"due"`
	Trigger   *protocol.Alarm `json:"trigger,omitempty"` // what became of a schedule or a webhook that was served
}

// Where a delivery stands.
const (
	NotificationWaiting   = "waiting"
	NotificationDelivered = "delivered"
	NotificationDead      = "dead" // it is attempted no more
)

// Notification is a delivery of a notification at one sink.
type Notification struct {
	Sink   string `json:"sink"`
	Status string `json:"status"` // waiting, delivered or dead: the last is attempted no more
	Notified
	Attempts  int    `json:"attempts"` // that did not work
	Next      *Time  `json:"next"`     // when it is attempted again; null is at once, or never
	Delivered *Time  `json:"delivered"`
	Error     string `json:"error,omitempty"` // of the last attempt that did not work
}

// RetryNotifications says what is attempted again: one of the two is given.
type RetryNotifications struct {
	IDs []string `json:"ids,omitempty"` // each may be cut short
	All bool     `json:"all,omitempty"` // all that failed
}

// NotificationsRetried are the deliveries that are attempted again: wf.notifications_retried/v1.
type NotificationsRetried struct {
	Schema  string   `json:"schema"`
	Retried []string `json:"retried"` // their ids, sorted
}

// Hooks is where notifications about runs go, and what is still to be delivered: wf.hooks/v1.
type Hooks struct {
	Schema string `json:"schema"`
	Sinks  []Hook `json:"sinks"`
}

// Hook is a sink of notifications with what was not delivered.
type Hook struct {
	Sink
	Deliveries []Delivery `json:"deliveries"` // those that wait, then those that are dead
}

// Delivery is a notification that was not delivered yet.
type Delivery struct {
	Notified
	Dead     bool   `json:"dead"`
	Attempts int    `json:"attempts"` // that did not work
	Next     *Time  `json:"next"`     // when it is attempted again; null is at once, or never
	Error    string `json:"error,omitempty"`
}

// Hooks are the sinks of a list, each with what was not delivered, the oldest first.
func (l *NotificationList) Hooks() *Hooks {
	out := &Hooks{Schema: "wf.hooks/v1", Sinks: []Hook{}}
	for _, s := range l.Sinks {
		h := Hook{Sink: s, Deliveries: []Delivery{}}
		for _, status := range []string{NotificationWaiting, NotificationDead} {
			for i := len(l.Items) - 1; i >= 0; i-- {
				if n := l.Items[i]; n.Sink == s.Name && n.Status == status {
					h.Deliveries = append(h.Deliveries, Delivery{n.Notified, status == NotificationDead, n.Attempts, n.Next, n.Error})
				}
			}
		}
		out.Sinks = append(out.Sinks, h)
	}
	return out
}
