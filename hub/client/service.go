package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

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

// checked is get for answers that may lack what is always there.
func checked[T any](ctx context.Context, a *API, path string, whole func(*T) bool) (*T, error) {
	v, err := get[T](ctx, a, path)
	if err == nil {
		err = sound(whole(v), path)
	}
	return v, err
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

// asks is how often workers of a hub are asked that did not answer in time.
const asks = 4

// Workflows lists what can be started. A worker of a hub that does not answer in time is asked again, and then left out.
func (s Service) Workflows(ctx context.Context) ([]api.Workflow, error) {
	for n := 1; ; n++ {
		l, err := get[struct {
			Items   []api.Workflow
			Missing []string
		}](ctx, s.API, "/v1/workflows")
		if err != nil || len(l.Missing) == 0 || n == asks {
			return l.Items, err
		}
	}
}

// List lists runs. What a server lists at once is bounded (api.MaxLimit): more are read in pages.
func (s Service) List(ctx context.Context, q api.Query) (*api.Page, error) {
	var all *api.Page
	read := map[string]bool{}
	limit := q.Limit
	for want := limit; ; {
		q.Limit = api.MaxLimit
		if want > 0 {
			q.Limit = min(want, api.MaxLimit)
		}
		p, err := get[api.Page](ctx, s.API, withQuery("/v1/runs", listing(q)))
		if err != nil {
			return nil, err
		}
		if all != nil {
			p.Items, p.Unread, p.Searched, p.Counts = append(all.Items, p.Items...), append(all.Unread, p.Unread...), all.Searched, all.Counts
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

// listing are the parameters of a list of runs.
func listing(q api.Query) url.Values {
	moment := func(us int64) string {
		if us == 0 {
			return ""
		}
		return string(protocol.AppendTime(nil, us))
	}
	usd := func(n *float64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatFloat(*n, 'f', -1, 64)
	}
	tokens := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	return given("status", string(q.Status), "workflow", q.Workflow, "type", q.Type, "tag", q.Tag, "q", q.Text, "before", q.Before, "limit", strconv.Itoa(q.Limit), "all", yes(q.All),
		"search", q.Search, "since", moment(q.Since), "until", moment(q.Until), "cost_min", usd(q.CostMin), "cost_max", usd(q.CostMax),
		"tokens_min", tokens(q.TokensMin), "tokens_max", tokens(q.TokensMax), "person", q.Person, "counts", yes(q.Counts))
}

// yes is a parameter that is left out where it is false.
func yes(b bool) string {
	if !b {
		return ""
	}
	return "true"
}

// given are parameters of a query by name, without those that are empty.
func given(namesAndTexts ...string) url.Values {
	v := url.Values{}
	for pair := range slices.Chunk(namesAndTexts, 2) {
		if pair[1] != "" {
			v.Set(pair[0], pair[1])
		}
	}
	return v
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
		set("fold", int64(w.Fold))
		maps.Copy(v, given("status", strings.Join(w.States, ","), "role", w.Role))
		path := withQuery(runPath(run), v)
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
	return checked(ctx, s.API, runPath(run, "steps", step), func(x *api.RunStep) bool { return x.Run == run && x.Step != nil && x.ID == step })
}

// Graph is the picture of a run as SVG.
func (s Service) Graph(ctx context.Context, run protocol.RunID) (svg []byte, err error) {
	err = s.API.read(ctx, runPath(run, "graph"), &svg)
	return svg, err
}

// Messages is what a visit was sent first.
func (s Service) Messages(ctx context.Context, run protocol.RunID, step string) (*api.Messages, error) {
	return get[api.Messages](ctx, s.API, runPath(run, "steps", step, "messages"))
}

// VisitDiff compares the output of a visit with that of the role's previous one.
func (s Service) VisitDiff(ctx context.Context, run protocol.RunID, step string) (*api.VisitDiff, error) {
	return get[api.VisitDiff](ctx, s.API, runPath(run, "steps", step, "diff"))
}

// Diff compares two runs of one worker.
func (s Service) Diff(ctx context.Context, left, right protocol.RunID) (*api.Diff, error) {
	return get[api.Diff](ctx, s.API, runPath(left, "diff", string(right)))
}

// Explain decides again why a step was entered.
func (s Service) Explain(ctx context.Context, run protocol.RunID, step string) (*api.Explanation, error) {
	return get[api.Explanation](ctx, s.API, runPath(run, "steps", step, "explain"))
}

// ExplainRun decides again why a run ended, or is where it is.
func (s Service) ExplainRun(ctx context.Context, run protocol.RunID) (*api.RunExplanation, error) {
	return get[api.RunExplanation](ctx, s.API, runPath(run, "explain"))
}

// Cache compares every prompt of a run with the one before it.
func (s Service) Cache(ctx context.Context, run protocol.RunID) (*api.Cache, error) {
	return checked(ctx, s.API, runPath(run, "cache"), func(c *api.Cache) bool {
		return c.Run == run && without(c.Items) && (c.Compactions == 0 || c.MinCompacted != nil)
	})
}

// Cost sums what model calls used.
func (s Service) Cost(ctx context.Context, run protocol.RunID, by string) (*api.Cost, error) {
	return checked(ctx, s.API, withQuery(runPath(run, "cost"), given("by", by)), func(c *api.Cost) bool {
		return c.Run == run && without(c.Items) && c.Total != nil
	})
}

// Trace writes the spans of a run.
func (s Service) Trace(ctx context.Context, run protocol.RunID, o api.TraceOptions, w io.Writer) error {
	return s.API.download(ctx, withQuery(runPath(run, "trace"), given("prompts", yes(o.Prompts))), w)
}

// Looks are what a run recorded of the files of its workspace, in as many answers as that takes.
func (s Service) Looks(ctx context.Context, run protocol.RunID) (*api.Looks, error) {
	var all *api.Looks
	after := ""
	for {
		path := withQuery(runPath(run, "looks"), given("after", after))
		l, err := get[api.Looks](ctx, s.API, path)
		if err != nil {
			return nil, err
		}
		if err := sound(l.Run == run && (l.Next == "" || len(l.Looks)+len(l.Own) > 0 && l.Next != after), path); err != nil {
			return nil, err
		}
		if all != nil {
			l.Looks, l.Own = append(all.Looks, l.Looks...), append(all.Own, l.Own...)
		}
		all, after = l, l.Next
		if all.Next = ""; after == "" {
			return all, nil
		}
	}
}

// Verify has the server prove a run, which proves it to a caller that trusts the server.
func (s Service) Verify(ctx context.Context, run protocol.RunID) (*protocol.Report, error) {
	return get[protocol.Report](ctx, s.API, runPath(run, "verify"))
}

// Start begins a run; one that no worker of a hub has begun yet is submitted again until one has.
func (s Service) Start(ctx context.Context, x api.Start) (protocol.RunID, bool, error) {
	return s.API.Submit(ctx, &x, s.Waits)
}

func (s Service) act(ctx context.Context, run protocol.RunID, verb string, body any) error {
	return s.API.post(ctx, runPath(run, verb), body, new(api.Accepted))
}

// Answer answers a waiting visit and names it.
func (s Service) Answer(ctx context.Context, run protocol.RunID, x api.Answer) (string, error) {
	if x.Fields == nil {
		x.Fields = json.RawMessage("null")
	}
	var out struct{ Step string }
	err := s.API.post(ctx, runPath(run, "answer"), x, &out)
	return out.Step, err
}

// Cancel ends a run permanently.
func (s Service) Cancel(ctx context.Context, run protocol.RunID, reason string) error {
	return s.act(ctx, run, "cancel", api.Cancel{Reason: reason})
}

// Delete puts a tombstone in the place of a run that has ended.
func (s Service) Delete(ctx context.Context, run protocol.RunID, d api.Delete) (*api.Deleted, error) {
	dry := ""
	if d.DryRun {
		dry = "true"
	}
	path := withQuery("/v1/runs/"+segment(string(run)), given("why", d.Why, "dry_run", dry))
	out := new(api.Deleted)
	if _, err := s.API.call(ctx, http.MethodDelete, path, nil, nil, out); err != nil {
		return nil, err
	}
	return out, sound(out.ID == run && len(out.Runs) > 0, path)
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
func (s Service) Fork(ctx context.Context, run protocol.RunID, x api.Fork) (out api.Accepted, err error) {
	if x.Dir != "" || x.Worktree {
		return out, protocol.ErrUsage.With("fork it on the machine of the store", "a workspace lies on the machine of the store: a server takes none from a client")
	}
	path := runPath(run, "fork")
	if err = s.API.post(ctx, path, x, &out); err == nil {
		err = sound(out.ID != "", path)
	}
	return out, err
}

// Send queues a text of another source for a run.
func (s Service) Send(ctx context.Context, run protocol.RunID, x api.Message) error {
	return s.act(ctx, run, "messages", x)
}

// Import sends an archive.
func (s Service) Import(ctx context.Context, archive io.Reader, o api.ImportOptions) (*api.Imported, error) {
	path := withQuery("/v1/archives", given("run", string(o.Run), "agent", o.Worker))
	out := new(api.Imported)
	if err := s.API.upload(ctx, path, archive, out); err != nil {
		return nil, err
	}
	return out, sound(out.Runs != nil && out.Roots != nil, path)
}

// Contents tells what Export writes.
func (s Service) Contents(ctx context.Context, run protocol.RunID, o api.ExportOptions, begin func(protocol.Archive) error, each func([]protocol.Link) error) error {
	path := withQuery(runPath(run, "archive", "contents"), given("files", yes(o.Files)))
	first := true
	return s.API.lines(ctx, path, func(line []byte) error {
		if first {
			first = false
			c, err := parsed[api.ArchiveContents](path, line)
			if err != nil {
				return err
			}
			record, err := c.Record()
			if err != nil {
				return fmt.Errorf("GET %s: %w", path, err)
			}
			return begin(record)
		}
		names, err := parsed[[]api.CID](path, line)
		if err != nil {
			return err
		}
		some, err := api.LinksOf(names)
		if err != nil {
			return fmt.Errorf("GET %s: %w", path, err)
		}
		return each(some)
	})
}

// parsed is a line of an answer.
func parsed[T any](path string, line []byte) (out T, err error) {
	if err = json.Unmarshal(line, &out); err != nil {
		err = fmt.Errorf("GET %s: a line of the answer is no JSON: %w", path, err)
	}
	return out, err
}

// Parts writes some blocks of a run as an archive of their own.
func (s Service) Parts(ctx context.Context, run protocol.RunID, blocks []protocol.Link, w io.Writer) error {
	return s.API.ask(ctx, runPath(run, "archive", "parts"), api.BlockNames{Blocks: api.NamesOf(blocks)}, w)
}

// Lacking are those of some blocks that the server's store does not have.
func (s Service) Lacking(ctx context.Context, blocks []protocol.Link) ([]protocol.Link, error) {
	var out api.LackedBlocks
	path := withQuery("/v1/archives/lacking", given("agent", s.Worker))
	if err := s.API.post(ctx, path, api.BlockNames{Blocks: api.NamesOf(blocks)}, &out); err != nil {
		return nil, err
	}
	return api.LinksOf(out.Blocks)
}

// Export writes a run as an archive. It is the caller's to prove by hash.
func (s Service) Export(ctx context.Context, run protocol.RunID, o api.ExportOptions, w io.Writer) error {
	return s.API.download(ctx, withQuery(runPath(run, "archive"), given("files", yes(o.Files))), w)
}
