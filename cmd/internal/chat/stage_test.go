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

	"wf/cmd/internal/chat"
	"wf/cmd/internal/screentest"
	"wf/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, screentest.LeftBehind) }

// room is a session that the test plays the other side of.
type room struct {
	mu      sync.Mutex
	events  []protocol.WireEvent
	follow  []func(chat.Update) // of each connection
	joined  chan struct{}
	info    chat.Info
	said    chan string
	command func(chat.Command) (chat.Outcome, error)
	pages   int
	tasks   []chat.TaskPage
	deaf    error // of Say
}

func newRoom() *room {
	return &room{joined: make(chan struct{}, 8), said: make(chan string, 64), info: chat.Info{Run: "RUN1", Title: "talk", Window: 32000}}
}

func (r *room) Info() chat.Info { return r.info }

func (r *room) Follow(ctx context.Context, from protocol.Seq, on func(chat.Update)) error {
	r.mu.Lock()
	for i := range r.events {
		if r.events[i].Seq > from {
			on(chat.Update{Event: &r.events[i]})
		}
	}
	r.follow = append(r.follow, on)
	r.mu.Unlock()
	on(chat.Update{Live: true})
	r.joined <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (r *room) Tip(context.Context) (protocol.Seq, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return protocol.Seq(len(r.events)), nil
}

func (r *room) Page(_ context.Context, before protocol.Seq, n int) ([]protocol.WireEvent, error) {
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

func (r *room) Say(_ context.Context, step, text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deaf == nil {
		r.said <- step + ": " + text
	}
	return r.deaf
}

func (r *room) Fill(_ context.Context, step, choice string, fields map[string]any) error {
	b, err := json.Marshal(fields)
	if choice != "" {
		step += "=" + choice
	}
	r.said <- step + " " + string(b)
	return err
}

func (r *room) Choose(_ context.Context, c chat.Chosen) error {
	r.said <- strings.TrimSpace(c.Step + "=" + c.Value + " " + strings.TrimSpace(c.Shown+" "+c.Text))
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
func (r *room) happen(step string, typ protocol.EventType, data map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	e := protocol.WireEvent{Seq: protocol.Seq(len(r.events) + 1), Type: typ, Data: raw}
	if step != "" {
		e.Step = &step
	}
	r.events = append(r.events, e)
	r.tell(chat.Update{Event: &e})
}

// tell tells all who follow; mu is held.
func (r *room) tell(u chat.Update) {
	for _, on := range r.follow {
		on(u)
	}
}

func (r *room) live(step, kind, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell(chat.Update{Delta: &protocol.Frame{Type: protocol.FrameDelta, Step: step, Kind: kind, Text: text}})
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
	r.tell(chat.Update{Driven: &is})
}
