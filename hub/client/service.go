package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"wf/api"
	"wf/protocol"
)

// Service is an api.Service that a server answers for: wf serve, or wf hub.
type Service struct {
	API   *API
	Name  string        // of the server in errors: the address as the user gave it
	Tell  func(string)  // what a user should know besides, such as workers that did not answer; nil tells nothing
	Waits func(Waiting) // called while Start waits for the run to begin; may be nil
	// Worker is the id of the worker whose memories are meant at a hub that knows several; "" is the only one.
	Worker string
	// Decode makes the update of an event that Follow shows, with its long texts, which read finds; nil leaves
	// the data of events out.
	Decode func(read func(protocol.Link) ([]byte, error), run protocol.RunID, e protocol.Entry) (api.Update, error)
}

var (
	_ api.Service  = Service{}
	_ api.Follower = Service{}
)

// get reads what GET path answers.
func get[T any](ctx context.Context, a *API, path string) (*T, error) {
	v := new(T)
	return v, a.read(ctx, path, v)
}

// sound is nil for an answer as wf gives it. Others are shown to people too, by code that counts on what is always there.
func sound(is bool, path string) error {
	if is {
		return nil
	}
	return &protocol.Error{Code: "bad_answer", Message: path + ": the answer lacks what every server of wf sends, repeats a page, or is of another run",
		Hint: "is this address that of a wf serve or wf hub, of this version?"}
}

// without reports whether a list has no null in it.
func without[T any](list []*T) bool { return !slices.Contains(list, nil) }

// Workflows lists what can be started.
func (s Service) Workflows(ctx context.Context) ([]api.Workflow, error) {
	l, err := get[struct{ Items []api.Workflow }](ctx, s.API, "/v1/workflows")
	return l.Items, err
}

// List lists runs. What a server lists at once is bounded (api.MaxLimit): more are read in pages.
func (s Service) List(ctx context.Context, q api.Query) (*api.Page, error) {
	var all *api.Page
	read := map[protocol.RunID]bool{}
	limit := q.Limit
	for want := limit; ; {
		q.Limit = api.MaxLimit
		if want > 0 {
			q.Limit = min(want, api.MaxLimit)
		}
		p, err := get[api.Page](ctx, s.API, "/v1/runs?"+encode(q))
		if err != nil {
			return nil, err
		}
		if all != nil {
			p.Items, p.Unread = append(all.Items, p.Items...), append(all.Unread, p.Unread...)
		}
		all = p
		if all.Next == nil || want > 0 && len(all.Items) >= limit {
			return all, nil
		}
		if err := sound(!read[*all.Next], "/v1/runs"); err != nil {
			return nil, err
		}
		if q.Before, read[*all.Next] = *all.Next, true; want > 0 {
			want = limit - len(all.Items)
		}
	}
}

func encode(q api.Query) string {
	v := url.Values{}
	for name, text := range map[string]string{"status": string(q.Status), "workflow": q.Workflow, "tag": q.Tag, "q": q.Text, "before": string(q.Before)} {
		if text != "" {
			v.Set(name, text)
		}
	}
	v.Set("limit", strconv.Itoa(q.Limit))
	if q.All {
		v.Set("all", "true")
	}
	return v.Encode()
}

// Run reads a run with some of its steps, in as many answers as that takes.
func (s Service) Run(ctx context.Context, run protocol.RunID, w api.Window) (*api.Run, error) {
	var newest *api.Run
	var steps []*api.Step
	for {
		v := url.Values{}
		set := func(name string, n int64) {
			if n > 0 {
				v.Set(name, strconv.FormatInt(n, 10))
			}
		}
		if w.Limit > 0 {
			set("limit", int64(min(w.Limit-len(steps), api.MaxSteps)))
		}
		set("before", int64(w.Before))
		set("at", int64(w.At))
		path := runPath(run)
		if len(v) > 0 {
			path += "?" + v.Encode()
		}
		page, err := get[api.Run](ctx, s.API, path)
		if err != nil {
			return nil, err
		}
		if err := sound(page.ID == run && without(page.Steps) && (page.Earlier == 0 || w.Before == 0 || page.Earlier < w.Before), path); err != nil {
			return nil, err
		}
		if newest == nil {
			newest = page
		}
		steps = append(page.Steps, steps...)
		if w.Before = page.Earlier; page.Earlier != 0 && (w.Limit <= 0 || len(steps) < w.Limit) {
			continue
		}
		newest.Steps, newest.Earlier = steps, page.Earlier
		if len(steps) >= newest.Count() { // it is all of them
			newest.Total, newest.Roles, newest.Ways = 0, nil, nil
		}
		return newest, nil
	}
}

// Step is one visit of a run.
func (s Service) Step(ctx context.Context, run protocol.RunID, step string) (*api.RunStep, error) {
	path := runPath(run, "steps", step)
	x, err := get[api.RunStep](ctx, s.API, path)
	if err == nil {
		err = sound(x.Run == run && x.Step != nil && x.ID == step, path)
	}
	return x, err
}

// Graph is the picture of a run as SVG.
func (s Service) Graph(ctx context.Context, run protocol.RunID) (svg []byte, err error) {
	return svg, s.API.read(ctx, runPath(run, "graph"), &svg)
}

// Messages is what a visit was sent first.
func (s Service) Messages(ctx context.Context, run protocol.RunID, step string) (*api.Messages, error) {
	return get[api.Messages](ctx, s.API, runPath(run, "steps", step, "messages"))
}

// VisitDiff compares the output of a visit with that of the role's previous one.
func (s Service) VisitDiff(ctx context.Context, run protocol.RunID, step string) (*api.VisitDiff, error) {
	return get[api.VisitDiff](ctx, s.API, runPath(run, "steps", step, "diff"))
}

// Diff compares two runs of one agent.
func (s Service) Diff(ctx context.Context, left, right protocol.RunID) (*api.Diff, error) {
	return get[api.Diff](ctx, s.API, runPath(left, "diff", string(right)))
}

// Explain decides again why a step was entered.
func (s Service) Explain(ctx context.Context, run protocol.RunID, step string) (*api.Explanation, error) {
	return get[api.Explanation](ctx, s.API, runPath(run, "steps", step, "explain"))
}

// Cache compares every prompt of a run with the one before it.
func (s Service) Cache(ctx context.Context, run protocol.RunID) (*api.Cache, error) {
	path := runPath(run, "cache")
	c, err := get[api.Cache](ctx, s.API, path)
	if err == nil {
		err = sound(c.Run == run && without(c.Items) && (c.Compactions == 0 || c.MinCompacted != nil), path)
	}
	return c, err
}

// Cost sums what model calls used.
func (s Service) Cost(ctx context.Context, run protocol.RunID, by string) (*api.Cost, error) {
	path := runPath(run, "cost") + "?by=" + url.QueryEscape(by)
	c, err := get[api.Cost](ctx, s.API, path)
	if err == nil {
		err = sound(c.Run == run && without(c.Items) && c.Total != nil, path)
	}
	return c, err
}

// Verify has the server prove a run, which proves it to a caller that trusts the server.
func (s Service) Verify(ctx context.Context, run protocol.RunID) (*protocol.Report, error) {
	return get[protocol.Report](ctx, s.API, runPath(run, "verify"))
}

// Start begins a run; one that no worker of a hub has begun yet is submitted again until one has.
func (s Service) Start(ctx context.Context, x api.Start) (protocol.RunID, bool, error) {
	return s.API.Submit(ctx, Submission(x), s.Waits)
}

// Submission is a start as it is submitted, with a request id.
func Submission(x api.Start) Start {
	models := make(map[string][]string, len(x.Models))
	for role, list := range x.Models {
		models[role] = list
	}
	s := Start{Workflow: x.Workflow, Inputs: x.Inputs, Title: x.Title, Description: x.Description, Type: x.Type, Scope: x.Scope,
		Tags: x.Tags, CreatedBy: x.CreatedBy, TargetUser: x.TargetUser, RequestID: x.RequestID, Models: models, Context: x.Context,
		AllowSecretInputs: x.AllowSecretInputs}
	if s.RequestID == "" {
		s.RequestID, s.Fresh = NewRequestID(), true
	}
	return s
}

func (s Service) act(ctx context.Context, run protocol.RunID, verb string, body any) error {
	_, _, err := s.API.act(ctx, run, verb, body)
	return err
}

// Answer answers a waiting visit and names it.
func (s Service) Answer(ctx context.Context, run protocol.RunID, x api.Answer) (string, error) {
	if x.Fields == nil {
		x.Fields = json.RawMessage("null")
	}
	_, step, err := s.API.act(ctx, run, "answer", x)
	return step, err
}

// Cancel ends a run permanently.
func (s Service) Cancel(ctx context.Context, run protocol.RunID, reason string) error {
	return s.act(ctx, run, "cancel", api.Cancel{Reason: reason})
}

// Suspend stops what a run does.
func (s Service) Suspend(ctx context.Context, run protocol.RunID) error {
	return s.act(ctx, run, "suspend", nil)
}

// Compact has the next visit of an agent begin with a compaction.
func (s Service) Compact(ctx context.Context, run protocol.RunID) error {
	return s.act(ctx, run, "compact", nil)
}

// Resume goes on with a run.
func (s Service) Resume(ctx context.Context, run protocol.RunID, x api.Resume) error {
	return s.act(ctx, run, "resume", x)
}

// Fork makes a new run that shares what came before a step.
func (s Service) Fork(ctx context.Context, run protocol.RunID, x api.Fork) (api.Forked, error) {
	if x.Dir != "" || x.Worktree {
		return api.Forked{}, protocol.ErrUsage.With("fork it on the machine of the store", "a workspace lies on the machine of the store: a server takes none from a client")
	}
	var out api.Accepted
	path := runPath(run, "fork")
	if _, err := s.API.call(ctx, http.MethodPost, path, nil, x, &out); err != nil {
		return api.Forked{}, err
	}
	return api.Forked{ID: out.ID, Seq: out.Seq, Warnings: out.Warnings}, sound(out.ID != "", path)
}

// Send queues a text of another source for a run.
func (s Service) Send(ctx context.Context, run protocol.RunID, x api.Message) error {
	return s.act(ctx, run, "messages", x)
}

// Import sends an archive.
func (s Service) Import(ctx context.Context, archive io.Reader, o api.ImportOptions) (*api.Imported, error) {
	v := url.Values{}
	for name, text := range map[string]string{"run": string(o.Run), "agent": o.Worker} {
		if text != "" {
			v.Set(name, text)
		}
	}
	path := "/v1/archives"
	if len(v) > 0 {
		path += "?" + v.Encode()
	}
	out := new(api.Imported)
	if err := s.API.upload(ctx, path, archive, out); err != nil {
		return nil, err
	}
	return out, sound(out.Runs != nil && out.Roots != nil, path)
}

// Export writes a run as an archive. It is the caller's to prove by hash.
func (s Service) Export(ctx context.Context, run protocol.RunID, w io.Writer) error {
	return s.API.download(ctx, runPath(run, "archive"), w)
}
