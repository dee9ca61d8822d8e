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

	"wf/engine"
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
	h.Take = func(ctx context.Context, e hook.Event) (hook.Taken, error) { return d.take(ctx, h, f.Path, e) }
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
	by, count := map[string]compose.Found{}, map[string]int{}
	for _, f := range all {
		count[f.Name]++
		if f.Program != nil && f.Program.Workflow.Webhook != nil {
			by[f.Name] = f
		}
	}
	for name, f := range by {
		if count[name] > 1 {
			d.tell(f, "the webhook is not served: another workflow has the same name", "rename one of them")
			delete(by, name)
		}
	}
	d.hooks.by, d.hooks.read = by, time.Now()
	return by, nil
}

// take starts the run of an event, and returns when that is on disk.
func (d *Daemon) take(ctx context.Context, h *hook.Hook, file string, e hook.Event) (hook.Taken, error) {
	f, err := d.Service.Catalog.Find(file)
	if err != nil {
		return hook.Taken{}, err
	}
	if f.Program.Workflow.Webhook == nil || f.Hooked() != nil {
		return hook.Taken{}, fmt.Errorf("%s was changed since its webhook was read", file)
	}
	request := e.Request(h)
	if run, taken, err := d.taken(ctx, request); taken != nil || err != nil {
		return hook.Taken{Run: run}, err
	}
	unfit := func(err error) error { return fmt.Errorf("%w: %s", hook.ErrUnfit, f.Hide(err.Error())) }
	body, err := bodyOf(e, h.Kind)
	if err != nil {
		return hook.Taken{}, unfit(err)
	}
	inputs, wanted, err := f.Program.Event(lang.Event{Body: body, Headers: e.Headers})
	if err != nil {
		return hook.Taken{}, unfit(err)
	}
	if !wanted {
		return hook.Taken{}, nil
	}
	caused, err := protocol.ParseCausedBy(e.Headers[protocol.CausedByHeader]) // where a notification of wf is the event, or began it
	if err != nil {
		return hook.Taken{}, unfit(err)
	}
	run, fresh, err := d.launch(ctx, f, inputs, engine.Launch{RequestID: request, CausedBy: caused, Trigger: &protocol.Trigger{Kind: h.Kind, Name: h.Name, Delivery: e.Delivery}})
	if errors.Is(err, protocol.ErrInputs) || errors.Is(err, protocol.ErrCausedTooDeep) {
		err = unfit(err)
	}
	return hook.Taken{Run: run, Fresh: fresh}, err
}

// taken is what a request began before, nil where there is nothing. The ids of runs are short: one that
// another request has is an error, and no run of this one.
func (d *Daemon) taken(ctx context.Context, request string) (protocol.RunID, *protocol.RunStarted, error) {
	run, err := d.Service.Engine.RunOfRequest(ctx, request)
	if err != nil {
		return "", nil, err
	}
	head, err := d.Service.Store.Head(ctx, protocol.RunHead(run))
	if err != nil || !head.Link.Defined() {
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
