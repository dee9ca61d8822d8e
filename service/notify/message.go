package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

// Schema names the JSON form of a Message.
const Schema = "wf.notification/v1"

// A Message is a notification as receivers read it: wf.notification/v1. It is made anew for each attempt from what
// is stored of the run, and is the same each time.
type Message struct {
	Schema     string             `json:"schema"`
	ID         string             `json:"id"` // the same for each attempt: what a receiver has seen it may drop
	Sink       string             `json:"sink"`
	On         protocol.Moment    `json:"on"`   // waiting, failed, done, limit, trigger
	Time       api.Time           `json:"time"` // of the event
	Run        protocol.RunID     `json:"run,omitempty"`
	Event      string             `json:"event,omitempty"` // CID
	Seq        protocol.Seq       `json:"seq,omitempty"`   // of the event in the run
	Step       string             `json:"step,omitempty"`
	Workflow   string             `json:"workflow"`
	Definition api.CID            `json:"definition,omitempty"`
	Status     protocol.RunStatus `json:"status"`          // of the run by the event; of a trigger stopped, served, removed
	Code       string             `json:"code,omitempty"`  // of the error behind a suspension; limit_reached; run_failed
	Limit      string             `json:"limit,omitempty"` // that was reached
	Kind       protocol.WaitKind  `json:"kind,omitempty"`  // of what is asked: question, choice, approval, task
	Link       string             `json:"link,omitempty"`  // of the run on the page that the sink names

	// Of waiting: until when and of which people an answer is wanted; Reminder is n of the n-th reminder of the question,
	// Escalated is n where the question was put to further people for the n-th time.
	Due       *api.Time `json:"due,omitempty"`
	Assignees []string  `json:"assignees,omitempty"`
	Reminder  int       `json:"reminder,omitempty"`
	Escalated int       `json:"escalated,omitempty"`

	// Of trigger, which is about no run: schedule or webhook, the file of its workflow, and of one that is stopped why, and what to do.
	Trigger string `json:"trigger,omitempty"`
	File    string `json:"file,omitempty"`
	Problem string `json:"problem,omitempty"`
	Fix     string `json:"fix,omitempty"`

	Title    string        `json:"title,omitempty"`    // include: [title]
	Question string        `json:"question,omitempty"` // include: [question]; its first 16 KiB
	Outputs  protocol.JSON `json:"outputs,omitempty"`  // include: [outputs]; left out where they are over 64 KiB

	caused    protocol.CausedBy // no run: by nothing
	workspace string
}

// Bounds of what a message includes, in bytes.
const (
	questionMax = 16 << 10
	outputsMax  = 64 << 10
)

// Why there is nothing to tell any more.
var (
	errGone     = errors.New("the run is no longer in the store, or came from elsewhere")
	errAnswered = errors.New("it is no longer asked")
	errRepeated = errors.New("a later one takes its place")
)

// message makes the notification of a delivery. An error wraps errGone or errAnswered where there is
// nothing to tell any more.
func message(ctx context.Context, e *engine.Engine, st *rules.State, sink protocol.Sink, name string, d protocol.DeliveryDue) (*Message, error) {
	entry, err := eventOf(ctx, e.Store, d)
	if err != nil {
		return nil, err
	}
	data, err := entry.AnyData()
	if err != nil {
		return nil, err
	}
	m := &Message{Schema: Schema, ID: d.ID, Sink: name, On: d.On, Time: entry.Time().Format(time.RFC3339Nano), Run: d.Run, Event: d.Event, Seq: d.Seq, Step: d.Step,
		Workflow: st.Program().Workflow.Name, Definition: st.Opened().Start.Workflow.String(), Link: linkOf(sink.Page, d.Run),
		workspace: st.Info.Workspace, caused: protocol.CausedBy{Run: d.Run, Seq: d.Seq, Depth: 1}}
	if by := st.Info.CausedBy; by != nil {
		m.caused.Depth = by.Depth + 1
	}
	if sink.Includes(protocol.IncludeTitle) {
		m.Title = roles.HideKeys(st.Info.Title)
	}
	text := func(t protocol.Text) (string, error) {
		if !t.Link.Defined() {
			return t.S, nil
		}
		b, err := protocol.ReadPayload(ctx, e.Store, t.Link)
		return string(b), err
	}
	ask := func(kind protocol.WaitKind, question protocol.Text, due int64, assignees []string) error {
		m.Status, m.Kind, m.Assignees, m.Reminder, m.Escalated = protocol.Waiting, kind, assignees, d.Reminder, d.Escalated
		if due > 0 {
			m.Due = new(timeOf(due))
		}
		if !sink.Includes(protocol.IncludeQuestion) {
			return nil
		}
		shown, err := text(question)
		shown = roles.HideKeys(shown)
		m.Question = shown[:roles.CutRunes(shown, questionMax)]
		return err
	}
	waits := st.Waiting()
	now := slices.IndexFunc(waits, func(w rules.WaitingVisit) bool { return w.Step.String() == d.Step })
	again := d.Reminder+d.Escalated > 0 || entry.Type == protocol.EvReminded || entry.Type == protocol.EvEscalated
	if again && now < 0 {
		return nil, errAnswered
	}
	switch x := data.(type) {
	case protocol.WaitingFor:
		err = ask(x.Kind, x.Question, x.Due, x.Assignees)
	case protocol.Reminded, protocol.Escalated: // they hold no question, and mean the one that is asked still
		err = ask(waits[now].Kind, waits[now].Question, waits[now].Due, waits[now].Assignees)
	case protocol.SuspendedBy:
		m.Status, m.Code = protocol.Suspended, x.Code
		if d.On == protocol.OnLimit {
			m.Code = codeLimit
		}
	case protocol.LimitReached:
		m.Status, m.Code, m.Limit = protocol.Suspended, codeLimit, x.Limit
	case protocol.Finished:
		if m.Status = x.Status; x.Status == protocol.Failed {
			m.Code = "run_failed"
		}
		if sink.Includes(protocol.IncludeOutputs) {
			m.Outputs, err = outputsOf(ctx, e.Store, x.Result)
		}
	}
	return m, err
}

// codeLimit is the code of a run that reached a limit.
const codeLimit = "limit_reached"

// eventOf reads the event of a delivery, which may be gone.
func eventOf(ctx context.Context, s protocol.Source, d protocol.DeliveryDue) (protocol.Entry, error) {
	for e, err := range s.After(ctx, d.Run, d.Seq-1) {
		if errors.Is(err, protocol.ErrUnknownRun) || errors.Is(err, protocol.ErrRunDeleted) || errors.Is(err, protocol.ErrFutureCursor) {
			break
		}
		if err != nil {
			return e, err
		}
		if e.CID.String() != d.Event {
			return e, fmt.Errorf("event %d of run %s is another one by now: %w", d.Seq, d.Run, errGone)
		}
		return e, nil
	}
	return protocol.Entry{}, fmt.Errorf("run %s: %w", d.Run, errGone)
}

// outputsOf are the outputs of a run, without keys; nil where they are too long.
func outputsOf(ctx context.Context, s protocol.Blocks, result protocol.Link) (protocol.JSON, error) {
	raw, err := s.Block(ctx, result)
	if err != nil {
		return nil, err
	}
	var r protocol.Result
	if err := cas.Decode(raw, &r); err != nil || !r.Outputs.Defined() {
		return nil, err
	}
	out, err := protocol.ReadPayload(ctx, s, r.Outputs)
	if err != nil {
		return nil, err
	}
	clean := []byte(roles.HideKeys(string(out)))
	if len(clean) > outputsMax || !json.Valid(clean) {
		return nil, nil
	}
	return clean, nil
}

func linkOf(page string, run protocol.RunID) string {
	return pageOf(page, "run/"+url.PathEscape(string(run)))
}

// pageOf is the address of a part of the page of a sink; "" where it names no page.
func pageOf(page, part string) string {
	if page == "" {
		return ""
	}
	return strings.TrimSuffix(page, "/") + "/#/" + part
}
