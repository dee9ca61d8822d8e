package protocol

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"wf/protocol/lazy"
)

// A Sink is where notifications about runs go. Exactly one of Webhook, Command and Desktop is set.
type Sink struct {
	Name    string   `cbor:"name" json:"name"`
	On      []Moment `cbor:"on,omitempty" json:"on,omitempty"`           // sorted; none is all
	Webhook string   `cbor:"webhook,omitempty" json:"webhook,omitempty"` // address that notifications are posted to
	Secret  string   `cbor:"secret,omitempty" json:"secret,omitempty"`   // of Webhook: variable with the key that signs
	Command string   `cbor:"command,omitempty" json:"command,omitempty"` // sh -c, confined, the notification on stdin
	Desktop bool     `cbor:"desktop,omitempty" json:"desktop,omitempty"` // shown on the screen of this machine
	Include []string `cbor:"include,omitempty" json:"include,omitempty"` // texts that go along, sorted: IncludeTitle, …
	Page    string   `cbor:"page,omitempty" json:"page,omitempty"`       // address of the web page that links lead to

	// Of a command: what it reaches, as for a role. Of a webhook NetworkHosts names its endpoint where its name
	// leads to a private address.
	Network      string   `cbor:"network,omitempty" json:"network,omitempty"`
	NetworkHosts []string `cbor:"network_hosts,omitempty" json:"network_hosts,omitempty"`
}

// Moment is what a notification is about.
type Moment string

// The moments.
const (
	OnWaiting Moment = "waiting" // a person is asked, reminded, or asked in the place of others: a question, an approval
	OnFailed  Moment = "failed"  // the run failed, or stopped by an error until a person helps
	OnDone    Moment = "done"
	OnLimit   Moment = "limit" // a limit was reached
	// OnTrigger: a schedule or a webhook that was served is not any more, or is again. Sinks of configs alone are notified of it: what a
	// workflow says is not known while its file is broken.
	OnTrigger Moment = "trigger"
)

// Moments are all of them.
var Moments = []Moment{OnWaiting, OnFailed, OnDone, OnLimit, OnTrigger}

// What a notification may hold of the texts of a run.
const (
	IncludeTitle    = "title"
	IncludeQuestion = "question"
	IncludeOutputs  = "outputs"
)

// Includes are all of them.
var Includes = []string{IncludeTitle, IncludeQuestion, IncludeOutputs}

// Wants reports whether the sink is notified of a moment.
func (s *Sink) Wants(m Moment) bool { return len(s.On) == 0 || slices.Contains(s.On, m) }

// Includes reports whether notifications hold a text.
func (s *Sink) Includes(text string) bool { return slices.Contains(s.Include, text) }

// Reach is what a command reaches, as for a role.
func (s *Sink) Reach() (all bool, hosts []string) { return reach(s.Network, s.NetworkHosts) }

// SinkName is what sinks are called.
var SinkName = lazy.Regexp(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)

// Check says what is wrong with a sink.
func (s *Sink) Check() error {
	if !SinkName().MatchString(s.Name) {
		return fmt.Errorf("name: %q is no name for a sink: letters, digits, _, - and ., at most 64", s.Name)
	}
	for _, m := range s.On {
		if !slices.Contains(Moments, m) {
			return fmt.Errorf("on: %q is not known (want waiting, failed, done, limit or, in a config, trigger)", m)
		}
	}
	for _, text := range s.Include {
		if !slices.Contains(Includes, text) {
			return fmt.Errorf("include: %q is not known (want title, question or outputs)", text)
		}
	}
	if err := checkAddress("page", s.Page); err != nil {
		return err
	}
	ways := 0
	for _, given := range []bool{s.Webhook != "", s.Command != "", s.Desktop} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return errors.New("exactly one of webhook, command and desktop says where notifications go")
	case s.Secret != "" && s.Webhook == "":
		return errors.New("secret signs what is sent to a webhook: it means nothing here")
	case s.Desktop && (s.Network != "" || len(s.NetworkHosts) > 0):
		return errors.New("network means nothing beside desktop")
	case s.Webhook == "":
		return nil
	case s.Network != "":
		return errors.New("network of a webhook is a list with its HOST:PORT, where that leads to a private address")
	}
	if err := checkAddress("webhook", s.Webhook); err != nil {
		return err
	}
	e, private, err := s.Endpoint()
	if err == nil && !private && strings.HasPrefix(s.Webhook, "http:") {
		err = fmt.Errorf("webhook: %s is not encrypted: write https; http is for an address of this machine or network, written in digits or named by  network: [%q]", s.Webhook, e)
	}
	return err
}

func checkAddress(key, address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%s: %q is no address (want https://HOST/…)", key, address)
	case u.User != nil:
		return fmt.Errorf("%s: the address holds a password", key)
	}
	return nil
}

// Endpoint is where the webhook lies; named tells that it is meant whatever network it lies in: its address is
// written in digits, or NetworkHosts has it.
func (s *Sink) Endpoint() (e Endpoint, named bool, err error) {
	u, err := url.Parse(s.Webhook)
	if err != nil {
		return e, false, err
	}
	port := u.Port()
	if port == "" {
		port = "443"
		if u.Scheme == "http" {
			port = "80"
		}
	}
	host := u.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if e, err = ParseEndpoint(host + ":" + port); err != nil {
		return e, false, fmt.Errorf("webhook: %w", err)
	}
	_, digits := e.Addr()
	return e, digits || slices.Contains(s.NetworkHosts, e.String()), nil
}

// NotifyHead is the name of the head of the journal of a sink: notify/<sink>.
func NotifyHead(sink string) string { return "notify/" + sink }

// The types of events in the journal of a sink.
const (
	EvSinkOpened      EventType = "sink_opened"
	EvCursorMoved     EventType = "cursor_moved"
	EvDeliveryDue     EventType = "delivery_due"
	EvDelivered       EventType = "delivered"
	EvDeliveryFailed  EventType = "delivery_failed"
	EvDeliveryDead    EventType = "delivery_dead"
	EvDeliveryRevived EventType = "delivery_revived"
)

// SinkOpened begins the journal of a sink. What the runs of the store had recorded by then fires nothing.
type SinkOpened struct {
	Origin string `cbor:"origin" json:"origin"` // random: with a run's event it makes the id of a notification
	Runs   Text   `cbor:"runs" json:"runs"`     // canonical JSON object: run → its newest event then
}

// CursorMoved passes over events of runs: they fire nothing from now on.
type CursorMoved struct {
	Runs Text `cbor:"runs" json:"runs"` // canonical JSON object: run → newest event that was looked at
}

// DeliveryDue is a notification that is to be delivered: durable before it is sent.
type DeliveryDue struct {
	ID    string `cbor:"id" json:"id"`
	Run   RunID  `cbor:"run" json:"run"`
	Seq   Seq    `cbor:"seq" json:"seq"`     // of the event that it is about
	Event string `cbor:"event" json:"event"` // its CID as text: no link, since it keeps no run alive
	On    Moment `cbor:"on" json:"on"`
	Step  string `cbor:"step,omitempty" json:"step,omitempty"`
	// Of OnWaiting: Reminder is n where it is the n-th reminder of the question, Escalated is n where the question was
	// put to further people for the n-th time. Both are 0 where it is asked.
	Reminder  int `cbor:"reminder,omitempty" json:"reminder,omitempty"`
	Escalated int `cbor:"escalated,omitempty" json:"escalated,omitempty"`
	// Of OnTrigger, which is about no run: Run, Seq and Event are empty.
	Trigger *Alarm `cbor:"trigger,omitempty" json:"trigger,omitempty"`
}

// An Alarm is what became of a schedule or a webhook that was served.
type Alarm struct {
	Kind     string `cbor:"kind" json:"kind"` // schedule or webhook
	Workflow string `cbor:"workflow" json:"workflow"`
	File     string `cbor:"file" json:"file"`
	State    string `cbor:"state" json:"state"`                         // stopped, served (again) or removed
	At       string `cbor:"at" json:"at"`                               // RFC 3339, UTC
	Problem  string `cbor:"problem,omitempty" json:"problem,omitempty"` // of stopped: what keeps it from being served; of removed: what was removed
	Fix      string `cbor:"fix,omitempty" json:"fix,omitempty"`         // of stopped: what to do
}

// What becomes of a trigger.
const (
	AlarmStopped = "stopped" // it was served, and starts nothing any more
	AlarmServed  = "served"  // it is served again
	AlarmRemoved = "removed" // with its file, or from it: nobody wants it any more
)

// Overtakes reports whether a notification takes the place of an earlier one of the same run that was not delivered:
// a question is called to mind once, however many reminders were missed.
func (d DeliveryDue) Overtakes(earlier DeliveryDue) bool {
	return d.Step == earlier.Step && (d.Escalated > 0 && earlier.Reminder+earlier.Escalated > 0 || d.Reminder > 0 && earlier.Reminder > 0)
}

// Delivered is a notification that the receiver has taken.
type Delivered struct {
	ID string `cbor:"id" json:"id"`
}

// DeliveryFailed is an attempt that did not work.
type DeliveryFailed struct {
	ID    string `cbor:"id" json:"id"`
	Next  int64  `cbor:"next" json:"next"` // unix µs of the next attempt
	Error string `cbor:"error" json:"error"`
}

// DeliveryDead ends the attempts: wf hook retry begins them again.
type DeliveryDead struct {
	ID    string `cbor:"id" json:"id"`
	Error string `cbor:"error" json:"error"`
	// Gone is set where the run is no longer in the store, or is not the user's own: the notification is forgotten.
	Gone bool `cbor:"gone,omitempty" json:"gone,omitempty"`
}

// DeliveryRevived begins the attempts again.
type DeliveryRevived struct {
	IDs []string `cbor:"ids" json:"ids"`
	By  string   `cbor:"by" json:"by"`
}

func (SinkOpened) EventType() EventType      { return EvSinkOpened }
func (CursorMoved) EventType() EventType     { return EvCursorMoved }
func (DeliveryDue) EventType() EventType     { return EvDeliveryDue }
func (Delivered) EventType() EventType       { return EvDelivered }
func (DeliveryFailed) EventType() EventType  { return EvDeliveryFailed }
func (DeliveryDead) EventType() EventType    { return EvDeliveryDead }
func (DeliveryRevived) EventType() EventType { return EvDeliveryRevived }

// CausedBy is the notification that a run was started by.
type CausedBy struct {
	Run   RunID `cbor:"run" json:"run"`     // that it was about
	Seq   Seq   `cbor:"seq" json:"seq"`     // of the event
	Depth int   `cbor:"depth" json:"depth"` // 1 where that run was not caused by one itself
}

// MaxCausedBy is how many runs may cause one another in a row: more are refused, since they may be a loop.
const MaxCausedBy = 3

// How a notification says what a run that it starts is caused by: to commands by a variable, to webhooks by a header.
const (
	CausedByEnv    = "WF_CAUSED_BY"
	CausedByHeader = "wf-caused-by"
)

// String is the written form: RUN:SEQ:DEPTH.
func (c CausedBy) String() string { return fmt.Sprintf("%s:%d:%d", c.Run, c.Seq, c.Depth) }

// ParseCausedBy reads the written form; "" is nil.
func ParseCausedBy(s string) (*CausedBy, error) {
	if s == "" {
		return nil, nil
	}
	parts := strings.Split(s, ":")
	if len(parts) == 3 && parts[0] != "" && len(parts[0]) <= 200 {
		seq, err := strconv.ParseInt(parts[1], 10, 53)
		depth, err2 := strconv.Atoi(parts[2])
		if err == nil && err2 == nil && seq > 0 && depth > 0 {
			return &CausedBy{RunID(parts[0]), Seq(seq), depth}, nil
		}
	}
	return nil, ErrUsage.With("it is set by a notification of wf: unset it elsewhere", "%s: %q is not RUN:SEQ:DEPTH", CausedByEnv, s)
}

// Allowed refuses what is the end of too long a row.
func (c *CausedBy) Allowed() error {
	if c == nil || c.Depth <= MaxCausedBy {
		return nil
	}
	return ErrCausedTooDeep.With("", "notifications have started %d runs in a row, the last by run %s, event %d: this may be a loop, and no further one is started", c.Depth-1, c.Run, c.Seq)
}
