package chat_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/cmd/internal/screentest"
	"wf/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, screentest.LeftBehind) }

// room is a session that the test plays the other side of.
type room struct {
	mu      sync.Mutex
	events  []api.Update
	follow  []func(api.Update) // of each connection
	joined  chan struct{}
	info    chat.Info
	said    chan string
	command func(chat.Command) (chat.Outcome, error)
	pages   int
	tasks   []chat.TaskPage
	deaf    error // of Say

	elsewhere bool // another process drives the run
	spent     string
	paths     func() ([]string, bool, error)
	files     func(line string) (string, error)
}

func newRoom() *room {
	return &room{joined: make(chan struct{}, 8), said: make(chan string, 64), info: chat.Info{Run: "RUN1", Title: "talk", Window: 32000}}
}

func (r *room) Info() chat.Info { return r.info }

func (r *room) Follow(ctx context.Context, from protocol.Seq, on func(api.Update)) error {
	r.mu.Lock()
	for i := range r.events {
		if r.events[i].Entry.Seq > from {
			on(r.events[i])
		}
	}
	r.follow = append(r.follow, on)
	r.mu.Unlock()
	on(api.Update{Whole: true})
	r.joined <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (r *room) Tip(context.Context) (protocol.Seq, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return protocol.Seq(len(r.events)), nil
}

func (r *room) Page(_ context.Context, before protocol.Seq, n int) ([]api.Update, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages++
	end := int(before) - 1
	return slices.Clone(r.events[max(0, end-n):end]), nil
}

func (r *room) Tasks(context.Context) ([]chat.TaskPage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks, nil
}

func (r *room) Spent(context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spent, nil
}

func (r *room) Paths(context.Context) ([]string, bool, error) {
	if r.paths == nil {
		return nil, false, nil
	}
	return r.paths()
}

func (r *room) Attached(_ context.Context, line string, _ int) (string, error) {
	if r.files == nil {
		return "", nil
	}
	return r.files(line)
}

func (r *room) Stops() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.elsewhere
}

func (r *room) Say(_ context.Context, text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deaf == nil {
		r.said <- ": " + text
	}
	return r.deaf
}

func (r *room) Answer(_ context.Context, x api.Answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	said := x.Step
	if x.Choice != "" {
		said += "=" + x.Choice
	}
	switch {
	case r.deaf != nil:
		return r.deaf
	case x.Fields != nil:
		said += " " + string(x.Fields)
	case x.Choice != "":
		said = strings.TrimSpace(said + " " + strings.TrimSpace(x.Shown+" "+x.Text))
	default:
		said += ": " + x.Text
	}
	r.said <- said
	return nil
}

func (r *room) Command(_ context.Context, c chat.Command) (chat.Outcome, error) {
	if r.command != nil {
		return r.command(c)
	}
	r.said <- "/" + string(c.Action) + " " + c.Arg
	return chat.Outcome{}, nil
}

// happen appends an event and tells who follows.
func (r *room) happen(step string, typ protocol.EventType, fields map[string]any) {
	d, err := dataOf(typ, fields)
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	u := event(protocol.Seq(len(r.events)+1), step, d)
	u.Entry.Type = typ
	r.events = append(r.events, u)
	r.tell(u)
}

// event is one of a step, or with "" of the run.
func event(seq protocol.Seq, step string, d protocol.Data) api.Update {
	e := &protocol.Entry{Event: protocol.Event{Seq: seq}}
	if d != nil {
		e.Type = d.EventType()
	}
	if step != "" {
		e.Step = &step
	}
	return api.Update{Entry: e, Data: d, Step: step}
}

// dataOf is the data of an event with some of its fields; nil for a type that is reserved.
func dataOf(typ protocol.EventType, fields map[string]any) (protocol.Data, error) {
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	into, data := typ.Spec().New()
	if into == nil {
		return nil, nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, err
	}
	return data(), nil
}

// tell tells all who follow; mu is held.
func (r *room) tell(u api.Update) {
	for _, on := range r.follow {
		on(u)
	}
}

func (r *room) live(step, kind, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell(api.Update{Step: step, Data: protocol.Delta{Kind: kind, Text: text}})
}

// screen is a terminal with the chat on it.
type screen struct {
	*screentest.Screen
	app *chat.App
}

func show(t *testing.T, r *room, width, height int) *screen {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	app := chat.New(ctx, r, nil)
	s := &screen{screentest.Show(t, app, width, height), app}
	t.Cleanup(cancel) // first of all
	select {
	case <-r.joined:
	case <-time.After(20 * time.Second):
		t.Fatalf("nobody follows the session; the screen is\n%s", s)
	}
	return s
}

func (r *room) heard(t *testing.T) string {
	t.Helper()
	select {
	case s := <-r.said:
		return s
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was said")
		return ""
	}
}

// driven tells whether a process drives the run.
func (r *room) driven(is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell(api.Update{Driven: &is})
}

// atWork shows a room whose agent works.
func atWork(t *testing.T) (*room, *screen) {
	t.Helper()
	r := newRoom()
	talk(r)
	r.happen("you#2", protocol.EvAnswered, obj{"text": "go"})
	r.happen("wf#2", protocol.EvStepStarted, obj{"role": "wf"})
	s := show(t, r, 80, 24)
	s.Shows("Esc stops")
	return r, s
}

// silent fails where something was asked of the session.
func (r *room) silent(t *testing.T) {
	t.Helper()
	select {
	case got := <-r.said:
		t.Errorf("%q was asked", got)
	default:
	}
}
