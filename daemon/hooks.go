package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"wf/engine/lang"
	"wf/hub/hook"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
)

// hooks are the workflows with webhooks, as they were read last. Requests come from strangers: they do not decide how
// often files are read.
type hooks struct {
	mu   sync.Mutex
	read time.Time
	by   map[string]compose.Found
}

// hooksFor is how long what was read is taken for what there is.
const hooksFor = 2 * time.Second

// hook is the webhook of a name; nil where none is served. Why it is not has one line in the log.
func (d *Daemon) hook(_ context.Context, name string) (*hook.Hook, error) {
	all, err := d.hooked()
	if err != nil {
		return nil, err
	}
	f, ok := all[name]
	if !ok {
		return nil, nil
	}
	if why := f.Hooked(); why != nil {
		d.tell(f, "the webhook waits for trust", protocol.HintOf(why))
		return nil, nil
	}
	h := &hook.Hook{Name: f.Name, Kind: f.Program.Workflow.Webhook.Kind, Secrets: f.HookSecrets()}
	if len(h.Secrets) == 0 {
		d.tell(f, "the secret of the webhook is not set, or has less than 16 bytes", "set "+strings.Join(f.Program.Workflow.Webhook.Secrets, " or ")+" in the environment of wf serve, and start it again")
		return nil, nil
	}
	h.Take = func(ctx context.Context, e hook.Event) (hook.Taken, error) { return d.take(ctx, h, f, e) }
	return h, nil
}

// hooked are the workflows with webhooks by name. A name that several workflows have is none.
func (d *Daemon) hooked() (map[string]compose.Found, error) {
	d.hooks.mu.Lock()
	defer d.hooks.mu.Unlock()
	if d.hooks.by != nil && time.Since(d.hooks.read) < hooksFor {
		return d.hooks.by, nil
	}
	all, err := d.Service.Catalog.List()
	if err != nil {
		return nil, err
	}
	by := map[string]compose.Found{}
	for _, f := range all {
		switch {
		case f.Program == nil || f.Program.Workflow.Webhook == nil:
		case f.Twin != "":
			d.tell(f, "the webhook is not served: another workflow has the same name", "rename one of them")
		default:
			by[f.Name] = f
		}
	}
	d.hooks.by, d.hooks.read = by, time.Now()
	return by, nil
}

// take keeps an event until its run has begun, and returns when that is on disk.
func (d *Daemon) take(ctx context.Context, h *hook.Hook, f compose.Found, e hook.Event) (hook.Taken, error) {
	f, err := d.Service.Catalog.Again(f)
	if err != nil {
		return hook.Taken{}, err
	}
	if f.Program.Workflow.Webhook == nil || f.Hooked() != nil {
		return hook.Taken{}, fmt.Errorf("%s was changed since its webhook was read", f.Path)
	}
	spool, err := d.events.open()
	if err != nil {
		return hook.Taken{}, err
	}
	return spool.Take(ctx, h.Name, e.Request(h), func() (*hook.Kept, hook.Taken, error) { return d.fit(ctx, spool, h, f, e) })
}

// fit is what is kept of an event; nil for one that begins nothing, or began a run before.
func (d *Daemon) fit(ctx context.Context, spool *hook.Spool, h *hook.Hook, f compose.Found, e hook.Event) (*hook.Kept, hook.Taken, error) {
	request := e.Request(h)
	run, began, err := d.before(ctx, request)
	if began || err != nil {
		return nil, hook.Taken{Run: run}, err
	}
	unfit := func(err error) error { return fmt.Errorf("%w: %s", hook.ErrUnfit, f.Hide(err.Error())) }
	body, err := bodyOf(e, h.Kind)
	if err != nil {
		return nil, hook.Taken{}, unfit(err)
	}
	inputs, wanted, err := f.Program.Event(lang.Event{Body: body, Headers: e.Headers})
	if err != nil {
		return nil, hook.Taken{}, unfit(err)
	}
	if !wanted {
		return nil, hook.Taken{}, nil
	}
	w := waits{Kind: h.Kind, Delivery: e.Delivery, Dir: d.Service.Dir, CausedBy: e.Headers[protocol.CausedByHeader]} // where a notification of wf is the event, or began it
	if w.Inputs, err = f.Program.Inputs(inputs); err != nil {
		return nil, hook.Taken{}, unfit(err)
	}
	x, err := w.launch(h.Name, request)
	if err != nil {
		return nil, hook.Taken{}, unfit(err)
	}
	if err = d.Service.Fits(ctx, f.Definition, x); err != nil {
		if never(err) {
			err = unfit(err)
		}
		return nil, hook.Taken{}, err
	}
	if c := f.Program.Workflow.Concurrency; c != nil && c.OnBusy == protocol.BusyRefuse { // it is to begin now or not at all
		run, fresh, err := d.launched(ctx, request)(d.Service.Begin(ctx, f.Definition, x))
		return nil, hook.Taken{Run: run, Fresh: fresh}, err
	}
	name, err := d.events.define(d.Service.Setup, spool, f)
	if err != nil {
		return nil, hook.Taken{}, err
	}
	what, err := protocol.PlainJSON(w)
	return &hook.Kept{Run: run, Definition: name, What: what}, hook.Taken{}, err
}

// askTime is how long an event waits for what the store says of it. It is kept where the store is silent: what that would have said
// shows when its run begins.
const askTime = time.Second

// before is the run that a request began before; else the one that it will begin.
func (d *Daemon) before(ctx context.Context, request string) (run protocol.RunID, began bool, err error) {
	ctx, stop := context.WithTimeout(ctx, askTime)
	defer stop()
	if err = d.Service.Store.MayGoOn(ctx); err == nil {
		var started *protocol.RunStarted
		run, started, err = d.taken(ctx, request)
		began = started != nil
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, protocol.ErrBusy) || errors.Is(err, protocol.ErrUnreachable) {
		return d.Service.Engine.RequestRun(request), false, nil
	}
	return run, began, err
}

// taken is what a request began before, nil where there is nothing. The ids of runs are short: one that
// another request has is an error, and no run of this one.
func (d *Daemon) taken(ctx context.Context, request string) (protocol.RunID, *protocol.RunStarted, error) {
	run, err := d.Service.Engine.RunOfRequest(ctx, request)
	if err != nil {
		return "", nil, err
	}
	head, err := d.Service.Store.Head(ctx, protocol.RunHead(run))
	if err == nil && !head.Link.Defined() {
		if head, err = d.Service.Store.Head(ctx, protocol.DeletedHead(run)); err == nil && head.Link.Defined() {
			return run, &protocol.RunStarted{}, nil
		}
		return run, nil, err
	}
	if err != nil {
		return run, nil, err
	}
	began, err := query.Started(ctx, d.Service.Store, run)
	switch {
	case errors.Is(err, protocol.ErrRunDeleted):
		return run, &began, nil
	case err != nil:
		return run, nil, err
	case began.RequestID != request:
		return run, nil, fmt.Errorf("the run %s has the id that this event would have: %w", run, protocol.ErrHeadMoved)
	}
	return run, &began, nil
}

// bodyOf is the body of an event as expressions see it: JSON by its media type or without one, the fields of a form, or
// text. GitHub may be told to send its JSON as a field of a form.
func bodyOf(e hook.Event, kind string) (any, error) {
	media, _, err := mime.ParseMediaType(e.Media)
	switch {
	case e.Media == "", err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")):
		return bodyJSON(e.Body)
	case !utf8.Valid(e.Body):
		return nil, errors.New("the body is not UTF-8")
	case media != "application/x-www-form-urlencoded":
		return string(e.Body), nil
	}
	form, err := url.ParseQuery(string(e.Body))
	if err != nil {
		return nil, errors.New("the body is no form")
	}
	if kind == protocol.WebhookGitHub && form.Has("payload") {
		return bodyJSON([]byte(form.Get("payload")))
	}
	fields := map[string]any{}
	for name := range form {
		fields[name] = form.Get(name)
	}
	return fields, nil
}

func bodyJSON(b []byte) (any, error) {
	if !json.Valid(b) || !utf8.Valid(b) {
		return nil, errors.New("the body is no JSON in UTF-8; where it is text the sender says so by its Content-Type")
	}
	return lang.DecodeJSON(b)
}
