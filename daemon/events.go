package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"

	"wf/api"
	"wf/engine"
	"wf/files"
	"wf/hub/hook"
	"wf/metrics"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
)

// Events of webhooks are kept on disk before they are answered, and begin from there:
//
//	hooks.go take ─► hook.Spool ─► begin ─► service.Begin
//
// An event begins by the definition by which it was taken, whatever becomes of the file or of the trust in it meanwhile: then it fitted, and
// a person trusted it.

// eventsKey is the use of the key that seals what is kept.
const eventsKey = "events"

// eventsIn is where the events of a store are kept: on this machine, beside the store.
func eventsIn(beside string) string { return filepath.Join(beside, Dir, "hooks") }

// events are the events that wait for their runs.
type events struct {
	o   hook.SpoolOptions // without the key
	key func() ([]byte, error)

	mu    sync.Mutex
	spool *hook.Spool // nil until it is opened
	serve func(*hook.Spool)
	ended bool
	names map[string]named // by name of a hook, the newest definition that events were taken by
	// By that name, definitions as they were read again.
	read map[string]compose.Definition
}

// named is a definition with the name of what is kept of it.
type named struct {
	compose.Found
	name string
}

// is reports whether what is kept is that of a workflow as it is now.
func (n named) is(f compose.Found) bool {
	return n.Program != nil && (n.Program == f.Program ||
		n.CID == f.CID && n.Path == f.Path && bytes.Equal(n.Source, f.Source) && maps.EqualFunc(n.Program.Sources(), f.Program.Sources(), bytes.Equal))
}

// mostRead is how many definitions are remembered.
const mostRead = 64

// open is where events are kept. What cannot be opened now may be opened later.
func (x *events) open() (*hook.Spool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.spool != nil || x.ended {
		if x.ended {
			return nil, protocol.ErrShuttingDown
		}
		return x.spool, nil
	}
	o := x.o
	var err error
	if o.Key, err = x.key(); err != nil {
		return nil, fmt.Errorf("events of webhooks cannot be kept without the key of the user: %w", err)
	}
	if x.spool, err = hook.OpenSpool(o); err != nil {
		return nil, err
	}
	if x.serve != nil {
		x.serve(x.spool)
	}
	return x.spool, nil
}

// start begins what waits and what comes, by serve.
func (x *events) start(serve func(*hook.Spool)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.serve = serve
	if x.spool != nil {
		serve(x.spool)
	}
}

// close takes and begins no more events; left are those that the next start goes on with.
func (x *events) close() (left int, err error) {
	x.mu.Lock()
	spool := x.spool
	x.ended = true
	x.mu.Unlock()
	if spool == nil {
		return 0, nil
	}
	return spool.Close()
}

// depth is what waits here.
func (x *events) depth() (n int, bytes int64, age float64) {
	x.mu.Lock()
	spool := x.spool
	x.mu.Unlock()
	if spool == nil {
		return 0, 0, 0
	}
	n, bytes, oldest := spool.Depth()
	if n > 0 && !oldest.IsZero() {
		age = max(0, x.o.Now().Sub(oldest).Seconds())
	}
	return n, bytes, age
}

// define keeps the definition of a workflow, and gives its name.
func (x *events) define(u *compose.Setup, spool *hook.Spool, f compose.Found) (string, error) {
	x.mu.Lock()
	n := x.names[f.Name]
	x.mu.Unlock()
	if n.is(f) {
		return n.name, nil
	}
	whole, err := u.Whole(f.Definition)
	if err != nil {
		return "", err
	}
	again, err := u.Given(whole)
	if err != nil {
		return "", err
	}
	if b, err := again.Program.Block(); err != nil || b.Link != f.CID {
		return "", errors.Join(err, fmt.Errorf("%s was changed while an event came", f.Path))
	}
	text, err := protocol.PlainJSON(whole)
	if err != nil {
		return "", err
	}
	name, err := spool.Define(text)
	if err != nil {
		return "", err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.names[f.Name] = named{f, name}
	x.remember(name, again)
	return name, nil
}

// remember keeps a definition that was read; the caller holds mu.
func (x *events) remember(name string, def compose.Definition) {
	if len(x.read) >= mostRead {
		clear(x.read)
	}
	x.read[name] = def
}

// defined is a definition that was kept.
func (x *events) defined(u *compose.Setup, name string, read func(string) ([]byte, error)) (compose.Definition, error) {
	x.mu.Lock()
	def, there := x.read[name]
	x.mu.Unlock()
	if there {
		return def, nil
	}
	text, err := read(name)
	if err != nil {
		return def, err
	}
	var w api.Definition
	if err := json.Unmarshal(text, &w); err != nil {
		return def, protocol.ErrInvalid.With("", "the definition by which the event was taken: %v", err)
	}
	if def, err = u.Given(&w); err != nil {
		return def, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remember(name, def)
	return def, nil
}

// waits is what an event says of its run, besides what every one has.
type waits struct {
	Kind     string        `json:"kind"`
	Delivery string        `json:"delivery,omitempty"`
	Dir      string        `json:"dir"` // the workspace
	Inputs   protocol.JSON `json:"inputs"`
	CausedBy string        `json:"caused_by,omitempty"`
}

// launch is the run of an event.
func (w waits) launch(workflow, request string) (x engine.Launch, err error) {
	x = engine.Launch{RequestID: request, CreatedBy: "webhook", Workspace: w.Dir, Inputs: w.Inputs, Trigger: &protocol.Trigger{Kind: w.Kind, Name: workflow, Delivery: w.Delivery}}
	x.CausedBy, err = protocol.ParseCausedBy(w.CausedBy)
	return x, err
}

// never reports whether an error is a reason of the event itself: it will never begin.
func never(err error) bool {
	return errors.Is(err, protocol.ErrInputs) || errors.Is(err, protocol.ErrCausedTooDeep)
}

// beginEvents begins the runs of events that were kept; see hook.Begin.
func (d *Daemon) beginEvents(ctx context.Context, all []hook.Kept, definition func(string) ([]byte, error)) (int, error) {
	some := make([]service.Launching, 0, len(all))
	var failed error // of the event behind some
	for _, k := range all {
		var x service.Launching
		if x, failed = d.launching(k, definition); failed != nil {
			break
		}
		some = append(some, x)
	}
	begun, err := d.Service.BeginAll(ctx, some)
	for i, b := range begun {
		if b.Run != all[i].Run {
			d.Log.Warn("the run of the event has another id than the answer to its sender said: the run began in a store of another kind", "webhook", all[i].Hook, "run", b.Run, "answered", all[i].Run)
		}
	}
	switch {
	case err != nil:
		return len(begun), eventError(some[len(begun)].Definition, err)
	case failed != nil:
		return len(begun), eventError(compose.Definition{}, failed)
	}
	return len(begun), nil
}

// launching is the run of an event that was kept.
func (d *Daemon) launching(k hook.Kept, definition func(string) ([]byte, error)) (x service.Launching, err error) {
	var w waits
	if err = json.Unmarshal(k.What, &w); err != nil {
		return x, fmt.Errorf("%w: %w", hook.ErrUnfit, err)
	}
	if x.Definition, err = d.events.defined(d.Service.Setup, k.Definition, definition); err == nil {
		x.Launch, err = w.launch(k.Hook, k.Request)
	}
	return x, err
}

// eventError is why an event cannot begin, without secrets.
func eventError(def compose.Definition, err error) error {
	why := err.Error()
	if def.Program != nil {
		why = compose.Found{Definition: def}.Hide(why)
	}
	if never(err) || errors.Is(err, hook.ErrUnfit) || errors.Is(err, protocol.ErrInvalid) || errors.Is(err, protocol.ErrRequestReused) {
		return fmt.Errorf("%w: %s", hook.ErrUnfit, why)
	}
	return &protocol.Error{Code: protocol.CodeOf(err), Message: why, Hint: protocol.HintOf(err)}
}

// startEvents begins what waits, and what comes. Where no event was ever kept nothing is made.
func (d *Daemon) startEvents() {
	d.events.start(func(spool *hook.Spool) {
		d.Supervisor.work.Go(spool.Serve(d.Supervisor.ctx, d.beginEvents))
	})
	if !files.Exists(d.events.o.Dir) {
		return
	}
	if _, err := d.events.open(); err != nil {
		d.Log.Error("events of webhooks that wait cannot be read; it is tried again when one comes", "why", describe(err))
	}
}

// register has the metrics show what waits.
func (x *events) register(r *metrics.Registry) {
	r.GaugeFunc("wf_webhook_waiting", "Events of webhooks that were taken here and whose runs have not begun.", func(emit func(float64, ...string)) {
		n, _, _ := x.depth()
		emit(float64(n))
	})
	r.GaugeFunc("wf_webhook_waiting_bytes", "What they take on disk.", func(emit func(float64, ...string)) {
		_, bytes, _ := x.depth()
		emit(float64(bytes))
	})
	r.GaugeFunc("wf_webhook_oldest_seconds", "How long the event waits that was taken first; 0 where none does.", func(emit func(float64, ...string)) {
		_, _, age := x.depth()
		emit(age)
	})
}
