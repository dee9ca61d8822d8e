package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/hub/guard"
	"wf/hub/reply"
	"wf/protocol"
)

// shop is a backend with one run that remembers what it was asked.
type shop struct {
	asked []string
	err   error
	seq   protocol.Seq

	blocks map[protocol.Link][]byte // beside blockCID
	keeps  *api.CID                 // the tree of the files of every step
	looks  []api.Look
	own    []api.OwnVisit
	moving bool                  // whether R may change without an event
	takes  func(io.Reader) error // imports archives; nil counts their bytes
}

func (s *shop) note(format string, args ...any) error {
	s.asked = append(s.asked, fmt.Sprintf(format, args...))
	return s.err
}

func (s *shop) Workflows(context.Context) ([]api.Workflow, error) {
	return []api.Workflow{{Name: "hello", Inputs: json.RawMessage(`{"type":"object"}`)}}, s.note("workflows")
}
func (s *shop) Resolve(_ context.Context, text string) (api.Ref, error) {
	return api.Ref{Run: "R"}, s.note("resolve %s", text)
}
func (s *shop) List(_ context.Context, q api.Query) (*api.Page, error) {
	next := "R"
	return &api.Page{Items: []api.Row{{ID: "R", Driving: s.driving()}}, Next: &next}, s.note("runs %+v", q)
}
func (s *shop) Run(_ context.Context, r protocol.RunID, w api.Window) (*api.Run, error) {
	return &api.Run{ID: r, Driving: s.driving()}, s.note("run %s %+v", r, w)
}

func (s *shop) Step(_ context.Context, r protocol.RunID, step string) (*api.RunStep, error) {
	return &api.RunStep{Run: r, Step: &api.Step{ID: step, Artifacts: s.keeps}}, s.note("step %s %s", r, step)
}

func (s *shop) driving() api.Driving {
	if s.moving {
		return api.Driving{Driven: &s.moving}
	}
	return api.Driving{}
}

func (s *shop) Graph(_ context.Context, r protocol.RunID) ([]byte, error) {
	return []byte("<svg/>"), s.note("graph %s", r)
}
func (s *shop) Messages(_ context.Context, r protocol.RunID, step string) (*api.Messages, error) {
	return &api.Messages{}, s.note("messages %s %s", r, step)
}
func (s *shop) Looks(_ context.Context, r protocol.RunID) (*api.Looks, error) {
	l := api.Looks{Schema: "wf.looks/v1", Run: r, Recorded: true, Looks: slices.Clone(s.looks), Own: slices.Clone(s.own)}
	return &l, s.note("looks %s", r)
}
func (s *shop) VisitDiff(_ context.Context, r protocol.RunID, step string) (*api.VisitDiff, error) {
	return &api.VisitDiff{}, s.note("diff %s %s", r, step)
}
func (s *shop) Diff(_ context.Context, l, r protocol.RunID) (*api.Diff, error) {
	return &api.Diff{}, s.note("diff of %s and %s", l, r)
}
func (s *shop) ExplainRun(_ context.Context, r protocol.RunID) (*api.RunExplanation, error) {
	return &api.RunExplanation{}, s.note("explain %s", r)
}

func (s *shop) Explain(_ context.Context, r protocol.RunID, step string) (*api.Explanation, error) {
	return &api.Explanation{}, s.note("explain %s %s", r, step)
}
func (s *shop) Cache(_ context.Context, r protocol.RunID) (*api.Cache, error) {
	return &api.Cache{}, s.note("cache %s", r)
}
func (s *shop) Verify(_ context.Context, r protocol.RunID) (*protocol.Report, error) {
	return &protocol.Report{}, s.note("verify %s", r)
}
func (s *shop) Export(_ context.Context, r protocol.RunID, _ api.ExportOptions, w io.Writer) error {
	if r == "CUT" {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, protocol.ErrCorrupt)
	}
	if err := s.note("export %s", r); err != nil {
		return err
	}
	_, err := io.WriteString(w, "archive")
	return err
}
func (s *shop) Contents(_ context.Context, r protocol.RunID, o api.ExportOptions, begin func(protocol.Archive) error, each func([]protocol.Link) error) error {
	if err := s.note("contents of %s, files %t", r, o.Files); err != nil {
		return err
	}
	return errors.Join(begin(protocol.Archive{Runs: []protocol.ArchivedRun{{Run: r, Head: blockCID, Seq: 1}}}), each([]protocol.Link{blockCID}))
}

func (s *shop) Parts(_ context.Context, r protocol.RunID, blocks []protocol.Link, w io.Writer) error {
	_, err := io.WriteString(w, "parts")
	return errors.Join(s.note("%d parts of %s", len(blocks), r), err)
}

func (s *shop) Lacking(_ context.Context, blocks []protocol.Link) ([]protocol.Link, error) {
	return blocks[:1], s.note("which of %d are lacking", len(blocks))
}

func (s *shop) Import(_ context.Context, archive io.Reader, o api.ImportOptions) (*api.Imported, error) {
	if s.takes != nil {
		return nil, s.takes(archive)
	}
	b, err := io.ReadAll(archive)
	if err != nil {
		return nil, err
	}
	return &api.Imported{Runs: []protocol.RunID{"R"}, Roots: []string{}}, s.note("import of %d bytes as %q", len(b), o.Run)
}
func (s *shop) Cost(_ context.Context, r protocol.RunID, by string) (*api.Cost, error) {
	return &api.Cost{}, s.note("cost %s %s", r, by)
}
func (s *shop) Trace(_ context.Context, r protocol.RunID, o api.TraceOptions, w io.Writer) error {
	if err := s.note("trace %s %v", r, o.Prompts); err != nil {
		return err
	}
	_, err := io.WriteString(w, "{}\n")
	return err
}
func (s *shop) Start(_ context.Context, x api.Start) (protocol.RunID, bool, error) {
	return "R", x.RequestID != "old", s.note("start %s %v %v", x.Workflow, x.Tags, x.Models)
}
func (s *shop) Answer(_ context.Context, r protocol.RunID, a api.Answer) (string, error) {
	return "gate#1", s.note("answer %s %s%s", r, a.Choice, a.Text)
}
func (s *shop) Cancel(_ context.Context, r protocol.RunID, reason string) error {
	return s.note("cancel %s %s", r, reason)
}
func (s *shop) Delete(_ context.Context, r protocol.RunID, d api.Delete) (*api.Deleted, error) {
	return &api.Deleted{ID: r}, s.note("delete %s %v %s", r, d.DryRun, d.Why)
}
func (s *shop) Suspend(_ context.Context, r protocol.RunID) error { return s.note("suspend %s", r) }
func (s *shop) Compact(_ context.Context, r protocol.RunID) error { return s.note("compact %s", r) }
func (s *shop) Resume(_ context.Context, r protocol.RunID, x api.Resume) error {
	return s.note("resume %s %d", r, len(x.Limits))
}
func (s *shop) Fork(_ context.Context, r protocol.RunID, f api.Fork) (api.Accepted, error) {
	with := ""
	if f.With != nil {
		with = " with " + f.With.File
	}
	return api.Accepted{ID: "F"}, s.note("fork %s %s%s", r, f.Step, with)
}
func (s *shop) Send(_ context.Context, r protocol.RunID, m api.Message) error {
	return s.note("message %s %s", m.Source, m.Text)
}
func (s *shop) Tasks(_ context.Context, r protocol.RunID, p api.Part) (*api.TaskList, error) {
	return &api.TaskList{}, s.note("tasks %s %+v", r, p)
}
func (s *shop) Task(_ context.Context, r protocol.RunID, step string) (*api.RunTask, error) {
	return &api.RunTask{}, s.note("task %s %s", r, step)
}
func (s *shop) Scopes(context.Context) (*api.MemoryScopes, error) {
	return &api.MemoryScopes{}, s.note("scopes")
}
func (s *shop) Memories(_ context.Context, q api.MemoryQuery) (*api.Memories, error) {
	return &api.Memories{}, s.note("memories %+v", q)
}
func (s *shop) Memory(_ context.Context, scope string, id protocol.Seq) (*api.OneMemory, error) {
	return &api.OneMemory{}, s.note("memory %d of %s", id, scope)
}
func (s *shop) Recall(_ context.Context, q api.Recall) (*api.Recalled, error) {
	return &api.Recalled{}, s.note("recall %+v", q)
}
func (s *shop) Remember(_ context.Context, r api.Remember) (*api.Remembered, error) {
	return &api.Remembered{}, s.note("remember %d in %s", len(r.Notes), r.Scope)
}
func (s *shop) ChangeMemories(_ context.Context, c api.MemoryChanges) (*api.MemoriesChanged, error) {
	return &api.MemoriesChanged{}, s.note("change %d of %s", len(c.Changes), c.Scope)
}
func (s *shop) Reindex(_ context.Context, r api.Reindex, _ func(int, int)) (*api.Reindexed, error) {
	return &api.Reindexed{}, s.note("reindex %s with %s", r.Scope, r.Model)
}

func (s *shop) Notifications(_ context.Context, q api.NotificationQuery) (*api.NotificationList, error) {
	return &api.NotificationList{}, s.note("notifications %+v", q)
}
func (s *shop) RetryNotifications(_ context.Context, r api.RetryNotifications) (*api.NotificationsRetried, error) {
	return &api.NotificationsRetried{}, s.note("retry %+v", r)
}
func (s *shop) Deletions(_ context.Context, p api.Part) (*api.Deletions, error) {
	return &api.Deletions{}, s.note("deletions %+v", p)
}
func (s *shop) Tables(_ context.Context, p api.Part) (*api.TableList, error) {
	return &api.TableList{}, s.note("tables %+v", p)
}
func (s *shop) Table(_ context.Context, id protocol.RunID) (*api.Table, error) {
	return &api.Table{}, s.note("table %s", id)
}

// The feed of a shop: a run R, whose head moves with seq.
func (s *shop) After(context.Context, protocol.RunID, protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return func(func(protocol.Entry, error) bool) {}
}
func (s *shop) Block(_ context.Context, l protocol.Link) ([]byte, error) {
	if b, ok := s.blocks[l]; ok {
		return b, nil
	}
	if l != blockCID {
		return nil, protocol.ErrNotFound
	}
	return []byte("<script>"), nil
}
func (s *shop) Tip(_ context.Context, r protocol.RunID) (protocol.Link, protocol.Seq, error) {
	if r != "R" {
		return protocol.Link{}, 0, fmt.Errorf("run %q: %w", r, protocol.ErrUnknownRun)
	}
	return blockCID, s.seq, nil
}
func (s *shop) Changes(context.Context) (uint64, error) { return uint64(s.seq), nil }
func (s *shop) AwaitChange(context.Context, uint64) (uint64, error) {
	return 0, errors.New("nobody waits")
}

var blockCID, _ = protocol.ParseLink("bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy")

// ask makes a request of someone with scopes.
func ask(s *shop, scopes []guard.Scope, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	server := &Server{Service: s, Feed: s, Name: "here", Version: "v", Hooks: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body == "" {
		r = httptest.NewRequest(method, target, nil)
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	if scopes != nil {
		r = r.WithContext(guard.With(r.Context(), guard.Identity{Name: "x", Scopes: scopes}))
	}
	w := httptest.NewRecorder()
	server.Handler().ServeHTTP(w, r)
	return w
}

func TestRequestsReachTheBackendAndNothingElseDoes(t *testing.T) {
	all := guard.AllScopes
	for _, test := range []struct {
		name, method, target, body string
		status                     int
		want                       string // asked, or the code of the error
	}{
		{"workflows", "GET", "/v1/workflows", "", 200, "workflows"},
		{"runs", "GET", "/v1/runs?status=waiting&workflow=w&tag=t&q=x&limit=3&before=R&all=true", "", 200, "runs {Status:waiting Workflow:w Type: Tag:t Text:x Limit:3 Before:R All:true" + noFilters},
		{"runs by default", "GET", "/v1/runs", "", 200, "runs {Status: Workflow: Type: Tag: Text: Limit:50 Before: All:false" + noFilters},
		{"an unknown parameter", "GET", "/v1/runs?stauts=done", "", 400, "bad_request"},
		{"a parameter twice", "GET", "/v1/runs?q=a&q=b", "", 400, "bad_request"},
		{"an unknown status", "GET", "/v1/runs?status=dead", "", 400, "bad_request"},
		{"too many", "GET", "/v1/runs?limit=501", "", 400, "bad_request"},
		{"none", "GET", "/v1/runs?limit=0", "", 400, "bad_request"},
		{"no number", "GET", "/v1/runs?limit=x", "", 400, "bad_request"},
		{"no yes or no", "GET", "/v1/runs?all=1", "", 400, "bad_request"},
		{"a run", "GET", "/v1/runs/R", "", 200, "run R {Limit:1000 Before:0 At:0 States:[] Role: Fold:0 Bytes:8388608}"},
		{"a page of its steps", "GET", "/v1/runs/R?limit=20&before=77", "", 200, "run R {Limit:20 Before:77 At:0 States:[] Role: Fold:0 Bytes:8388608}"},
		{"a run as it was", "GET", "/v1/runs/R?at=5", "", 200, "run R {Limit:1000 Before:0 At:5 States:[] Role: Fold:0 Bytes:8388608}"},
		{"its steps of some states", "GET", "/v1/runs/R?status=failed,nonzero&role=check&limit=2", "", 200, "run R {Limit:2 Before:0 At:0 States:[failed nonzero] Role:check Fold:0 Bytes:8388608}"},
		{"its steps of no state", "GET", "/v1/runs/R?status=failed,", "", 400, "bad_request"},
		{"its steps of an unknown state", "GET", "/v1/runs/R?status=broken", "", 400, "bad_request"},
		{"a run as it never was", "GET", "/v1/runs/R?at=0", "", 400, "bad_request"},
		{"too many steps", "GET", "/v1/runs/R?limit=1001", "", 400, "bad_request"},
		{"steps before nothing", "GET", "/v1/runs/R?before=0", "", 400, "bad_request"},
		{"an unknown run", "GET", "/v1/runs/X", "", 404, "unknown_session"},
		{"its graph", "GET", "/v1/runs/R/graph", "", 200, "graph R"},
		{"a step", "GET", "/v1/runs/R/steps/coder%232", "", 200, "step R coder#2"},
		{"messages of a step", "GET", "/v1/runs/R/steps/coder%232/messages", "", 200, "messages R coder#2"},
		{"messages of an item", "GET", "/v1/runs/R/steps/coder%231%5B0%5D/messages", "", 200, "messages R coder#1[0]"},
		{"messages of no step", "GET", "/v1/runs/R/steps/coder/messages", "", 400, "bad_request"},
		{"a diff", "GET", "/v1/runs/R/steps/coder%232/diff", "", 200, "diff R coder#2"},
		{"what a step keeps", "GET", "/v1/runs/R/steps/coder%232/artifacts", "", 200, "step R coder#2"},
		{"too much of what a step keeps", "GET", "/v1/runs/R/steps/coder%232/artifacts?limit=5001", "", 400, "bad_request"},
		{"a file of no path", "GET", "/v1/runs/R/steps/coder%232/artifact", "", 400, "bad_request"},
		{"two runs", "GET", "/v1/runs/R/diff/Q", "", 200, "diff of R and Q"},
		{"why", "GET", "/v1/runs/R/steps/coder%232/explain", "", 200, "explain R coder#2"},
		{"why it ended", "GET", "/v1/runs/R/explain", "", 200, "explain R"},
		{"the cache", "GET", "/v1/runs/R/cache", "", 200, "cache R"},
		{"an archive", "GET", "/v1/runs/R/archive", "", 200, "export R"},
		{"verify", "GET", "/v1/runs/R/verify", "", 200, "verify R"},
		{"cost", "GET", "/v1/runs/R/cost", "", 200, "cost R role"},
		{"cost by model", "GET", "/v1/runs/R/cost?by=model", "", 200, "cost R model"},
		{"a trace", "GET", "/v1/runs/R/trace", "", 200, "trace R false"},
		{"a trace with prompts", "GET", "/v1/runs/R/trace?prompts=true", "", 200, "trace R true"},
		{"a trace with something else", "GET", "/v1/runs/R/trace?prompts=x", "", 400, "bad_request"},
		{"cost by something else", "GET", "/v1/runs/R/cost?by=x", "", 400, "bad_request"},
		{"start", "POST", "/v1/runs", `{"workflow":"hello","tags":["a"],"models":{"":"m","r":["x","y"]}}`, 201, "start hello [a] map[:[m] r:[x y]]"},
		{"start again", "POST", "/v1/runs", `{"workflow":"hello","request_id":"old"}`, 200, "start hello [] map[]"},
		{"start what?", "POST", "/v1/runs", `{}`, 400, "bad_request"},
		{"start with an unknown field", "POST", "/v1/runs", `{"workflow":"hello","worklfow":"x"}`, 400, "bad_request"},
		{"start with two objects", "POST", "/v1/runs", `{"workflow":"hello"}{}`, 400, "bad_request"},
		{"start with no JSON", "POST", "/v1/runs", `hello`, 400, "bad_request"},
		{"start with nothing", "POST", "/v1/runs", ``, 400, "bad_request"},
		{"start with a list", "POST", "/v1/runs", `[]`, 400, "bad_request"},
		{"start with inputs that are none", "POST", "/v1/runs", `{"workflow":"hello","inputs":[1]}`, 400, "bad_request"},
		{"start with a long request id", "POST", "/v1/runs", `{"workflow":"hello","request_id":"` + strings.Repeat("x", 201) + `"}`, 400, "bad_request"},
		{"start with an odd request id", "POST", "/v1/runs", `{"workflow":"hello","request_id":"a\u0000b"}`, 400, "bad_request"},
		{"start with an empty tag", "POST", "/v1/runs", `{"workflow":"hello","tags":[""]}`, 400, "bad_request"},
		{"start with no models", "POST", "/v1/runs", `{"workflow":"hello","models":{"r":[]}}`, 400, "bad_request"},
		{"start in an unknown context", "POST", "/v1/runs", `{"workflow":"hello","context":"x"}`, 400, "bad_request"},
		{"answer", "POST", "/v1/runs/R/answer", `{"choice":"y"}`, 200, "answer R y"},
		{"answer a step and a signal", "POST", "/v1/runs/R/answer", `{"step":"a#1","signal":"s"}`, 400, "bad_request"},
		{"cancel", "POST", "/v1/runs/R/cancel", ``, 200, "cancel R "},
		{"cancel and say why", "POST", "/v1/runs/R/cancel", `{"reason":"x"}`, 200, "cancel R x"},
		{"suspend", "POST", "/v1/runs/R/suspend", ``, 200, "suspend R"},
		{"compact", "POST", "/v1/runs/R/compact", ``, 200, "compact R"},
		{"resume", "POST", "/v1/runs/R/resume", `{"limits":{"steps":9}}`, 200, "resume R 1"},
		{"fork", "POST", "/v1/runs/R/fork", `{"step":"coder#2"}`, 201, "fork R coder#2"},
		{"fork with limits, and hold it", "POST", "/v1/runs/R/fork", `{"step":"coder#2","limits":{"steps":5},"hold":true}`, 201, "fork R coder#2"},
		{"fork under another definition", "POST", "/v1/runs/R/fork", `{"step":"coder#2","with":{"file":"/w.yaml","source":"wf: 1"}}`, 201, "fork R coder#2 with /w.yaml"},
		{"fork into a place", "POST", "/v1/runs/R/fork", `{"step":"coder#2","dir":"/home"}`, 400, "bad_request"},
		{"fork with no models", "POST", "/v1/runs/R/fork", `{"step":"coder#2","models":{"r":[]}}`, 400, "bad_request"},
		{"fork where it is", "POST", "/v1/runs/R/fork", `{}`, 201, "fork R "},
		{"fork at no step", "POST", "/v1/runs/R/fork", `{"step":"coder"}`, 400, "bad_request"},
		{"a message", "POST", "/v1/runs/R/messages", `{"source":"mail","text":"hi"}`, 200, "message mail hi"},
		{"a message of nobody", "POST", "/v1/runs/R/messages", `{"text":"hi"}`, 400, "bad_request"},
		{"parts without names", "POST", "/v1/runs/R/archive/parts", `{"blocks":[]}`, 400, "bad_request"},
		{"parts that are none", "POST", "/v1/runs/R/archive/parts", `{"blocks":["x"]}`, 400, "bad_request"},
		{"too many parts", "POST", "/v1/runs/R/archive/parts", `{"blocks":["` + strings.Repeat(`x","`, api.BlocksMost) + `x"]}`, 400, "bad_request"},
		{"lacking without names", "POST", "/v1/archives/lacking", `{"blocks":null}`, 400, "bad_request"},
		{"import what is no archive", "POST", "/v1/archives", `{}`, 415, "unsupported_media_type"},
		{"tasks", "GET", "/v1/runs/R/tasks", "", 200, "tasks R {After: Limit:5000 Bytes:4194304}"},
		{"more tasks", "GET", "/v1/runs/R/tasks?after=a%231&limit=5", "", 200, "tasks R {After:a#1 Limit:5 Bytes:4194304}"},
		{"too many tasks", "GET", "/v1/runs/R/tasks?limit=5001", "", 400, "bad_request"},
		{"a task", "GET", "/v1/runs/R/tasks/coder%232", "", 200, "task R coder#2"},
		{"a task of no step", "GET", "/v1/runs/R/tasks/coder", "", 400, "bad_request"},
		{"all memories", "GET", "/v1/memories", "", 200, "scopes"},
		{"a memory", "GET", "/v1/memories/items?scope=role/a/b&tag=x&tag=y,z&all_tags=true&pinned=true&oldest=true&sums=true&after=2.-3&limit=7", "", 200,
			"memories {Scope:role/a/b Tags:[x y,z] AllTags:true Pinned:true Oldest:true Sums:true Part:{After:2.-3 Limit:7 Bytes:4194304}}"},
		{"all memories of a worker, of no hub", "GET", "/v1/memories?agent=a", "", 400, "bad_request"},
		{"a memory with many tags", "GET", "/v1/memories/items?tag=" + strings.Repeat("x&tag=", 64) + "y", "", 400, "bad_request"},
		{"two memories", "GET", "/v1/memories/items?scope=a&scope=b", "", 400, "bad_request"},
		{"one thing remembered", "GET", "/v1/memories/items/12?scope=a", "", 200, "memory 12 of a"},
		{"one thing without a number", "GET", "/v1/memories/items/x", "", 400, "bad_request"},
		{"recall", "POST", "/v1/memories/recall", `{"scope":"a","text":"x","tags":["t"],"limit":3,"within":0.5}`, 200, "recall {Scope:a Text:x Tags:[t] AllTags:false Limit:3 Within:0.5 Model:}"},
		{"remember", "POST", "/v1/memories/remember", `{"scope":"a","notes":[{"content":"x"},{"content":"y","tags":["t"],"pinned":true}]}`, 200, "remember 2 in a"},
		{"remember something unknown", "POST", "/v1/memories/remember", `{"scope":"a","notes":[{"content":"x","by":"bob"}]}`, 400, "bad_request"},
		{"change", "POST", "/v1/memories/change", `{"scope":"a","changes":[{"id":1,"remove":true}]}`, 200, "change 1 of a"},
		{"reindex", "POST", "/v1/memories/reindex", `{"scope":"a","model":"m"}`, 200, "reindex a with m"},
		{"notifications", "GET", "/v1/notifications", "", 200, "notifications {Run: Part:{After: Limit:5000 Bytes:4194304}}"},
		{"notifications about a run", "GET", "/v1/notifications?run=R&limit=2&after=7.x", "", 200, "notifications {Run:R Part:{After:7.x Limit:2 Bytes:4194304}}"},
		{"too many notifications", "GET", "/v1/notifications?limit=5001", "", 400, "bad_request"},
		{"retry some", "POST", "/v1/notifications/retry", `{"ids":["msg_a"]}`, 200, "retry {IDs:[msg_a] All:false}"},
		{"retry all", "POST", "/v1/notifications/retry", `{"all":true}`, 200, "retry {IDs:[] All:true}"},
		{"retry what?", "POST", "/v1/notifications/retry", `{}`, 400, "bad_request"},
		{"retry some and all", "POST", "/v1/notifications/retry", `{"ids":["msg_a"],"all":true}`, 400, "bad_request"},
		{"retry what has no id", "POST", "/v1/notifications/retry", `{"ids":["msg_a",""]}`, 400, "bad_request"},
		{"retry as many as may be", "POST", "/v1/notifications/retry", `{"ids":["a"` + strings.Repeat(`,"a"`, 999) + `]}`, 200, "retry {IDs:[" + strings.Repeat("a ", 999) + "a] All:false}"},
		{"retry too many", "POST", "/v1/notifications/retry", `{"ids":["a"` + strings.Repeat(`,"a"`, 1000) + `]}`, 400, "bad_request"},
		{"tables", "GET", "/v1/tables?limit=3&after=7.x", "", 200, "tables {After:7.x Limit:3 Bytes:4194304}"},
		{"a table", "GET", "/v1/tables/7K3Q000000", "", 200, "table 7K3Q000000"},
		{"deletions", "GET", "/v1/deletions?limit=3&after=7.x", "", 200, "deletions {After:7.x Limit:3 Bytes:4194304}"},
		{"a block", "GET", "/v1/blocks/" + blockCID.String(), "", 200, ""},
		{"an unknown block", "GET", "/v1/blocks/bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e", "", 404, "not_found"},
		{"no CID", "GET", "/v1/blocks/x", "", 400, "bad_request"},
		{"nothing", "GET", "/v1/nothing", "", 404, "not_found"},
		{"another version", "GET", "/v2/runs", "", 404, "not_found"},
		{"delete", "DELETE", "/v1/runs/R", "", 200, "delete R false "},
		{"tell what would be deleted", "DELETE", "/v1/runs/R?dry_run=true&why=old+data", "", 200, "delete R true old data"},
		{"delete with an odd parameter", "DELETE", "/v1/runs/R?force=true", "", 400, "bad_request"},
		{"another method", "DELETE", "/v1/runs", "", 405, "method_not_allowed"},
		{"a method for reading", "POST", "/v1/workflows", "{}", 405, "method_not_allowed"},
		{"the sign of life", "GET", "/healthz", "", 200, ""},
		{"the description", "GET", "/v1/openapi.json", "", 200, ""},
	} {
		s := &shop{}
		w := ask(s, all, test.method, test.target, test.body)
		got := strings.Join(s.asked, "; ")
		if w.Code >= 400 {
			var f reply.Failure
			if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || f.Message == "" || f.Fix == "" {
				t.Errorf("%s: %v in %s", test.name, err, w.Body)
			}
			if got != "" {
				t.Errorf("%s: refused, and yet asked for %s", test.name, got)
			}
			got = f.Code
		}
		if w.Code != test.status || got != test.want {
			t.Errorf("%s: %d %q, want %d %q\n%s", test.name, w.Code, got, test.status, test.want, w.Body)
		}
	}
}

func TestEveryRouteWantsItsScope(t *testing.T) {
	for _, r := range routes {
		target := strings.NewReplacer("{id}", "R", "{step}", "a%231", "{cid}", blockCID.String(), "{other}", "Q", "{memory}", "1").Replace(r.path)
		if r.scope == "" {
			if w := ask(&shop{}, nil, r.method, target, ""); w.Code != 200 {
				t.Errorf("%s %s is open, and answers %d", r.method, r.path, w.Code)
			}
			continue
		}
		if w := ask(&shop{}, nil, r.method, target, ""); w.Code != 401 {
			t.Errorf("%s %s of nobody: %d", r.method, r.path, w.Code)
		}
		for _, other := range append([]guard.Scope{guard.Answer, guard.Worker, guard.Metrics}, guard.AllScopes...) {
			s := &shop{}
			w := ask(s, []guard.Scope{other}, r.method, target, "")
			if refused := w.Code == 403; refused != !(other == r.scope || other == guard.Run && r.scope == guard.Answer || other == guard.Admin && r.scope == guard.Metrics) || refused && len(s.asked) > 0 {
				t.Errorf("%s %s with %s alone: %d, asked %v", r.method, r.path, other, w.Code, s.asked)
			}
		}
		if req := httptest.NewRequest(r.method, target, nil); Public(req) {
			t.Errorf("%s %s is let in without credentials", r.method, r.path)
		}
	}
	for target, open := range map[string]bool{"/": true, "/assets/app.js": true, "/healthz": true, "/readyz": true, "/metrics": false, "/v1/openapi.json": true, "/v1": false, "/v1/x": false} {
		if Public(httptest.NewRequest(http.MethodGet, target, nil)) != open || Public(httptest.NewRequest(http.MethodPost, target, nil)) {
			t.Errorf("%s: open is not %v", target, open)
		}
	}
}

func TestWhatHasNotMovedIsNotSentAgain(t *testing.T) {
	s := &shop{seq: 7}
	for _, target := range []string{"/v1/runs", "/v1/runs/R", "/v1/runs/R/graph", "/v1/blocks/" + blockCID.String()} {
		tag := ask(s, guard.AllScopes, "GET", target, "").Header().Get("ETag")
		if w := ask(s, guard.AllScopes, "GET", target, "", "If-None-Match: "+tag); w.Code != 304 || w.Body.Len() > 0 {
			t.Errorf("%s: %d", target, w.Code)
		}
		if w := ask(s, guard.AllScopes, "GET", target, "", `If-None-Match: "old"`); w.Code != 200 {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
	tag := ask(s, guard.AllScopes, "GET", "/v1/runs", "").Header().Get("ETag")
	s.seq++
	if w := ask(s, guard.AllScopes, "GET", "/v1/runs", "", "If-None-Match: "+tag); w.Code != 200 {
		t.Errorf("something moved: %d", w.Code)
	}
}

// That its process was killed is no event of a run: a client that held its ETag would be told for
// ever that a process drives it.
func TestARunThatMayLoseItsProcessIsReadAnew(t *testing.T) {
	for _, target := range []string{"/v1/runs", "/v1/runs/R"} {
		if tag := ask(&shop{moving: true}, guard.AllScopes, "GET", target, "").Header().Get("ETag"); tag != "" {
			t.Errorf("%s has the ETag %s", target, tag)
		}
		if tag := ask(&shop{}, guard.AllScopes, "GET", target, "").Header().Get("ETag"); tag == "" {
			t.Errorf("%s has no ETag", target)
		}
	}
	for _, target := range []string{"/v1/runs?since=1h", "/v1/runs?until=1h"} { // which runs these are changes with time
		if tag := ask(&shop{}, guard.AllScopes, "GET", target, "").Header().Get("ETag"); tag != "" {
			t.Errorf("%s has the ETag %s", target, tag)
		}
	}
}

func TestErrorsHaveTheirStatus(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		code   string
	}{
		{protocol.ErrUnknownRun, 404, "unknown_session"}, {protocol.ErrFinal, 409, "run_final"}, {protocol.ErrRunLive, 409, "run_live"},
		{protocol.ErrInputs, 422, "invalid_inputs"}, {protocol.ErrBusy, 503, "store_busy"}, {protocol.ErrDiskFull, 507, "disk_full"},
		{protocol.ErrCorrupt, 500, "corrupt"}, {errors.New("x"), 500, "internal"}, {context.Canceled, 503, "shutting_down"},
	} {
		w := ask(&shop{err: fmt.Errorf("run R: %w", test.err)}, guard.AllScopes, "GET", "/v1/runs/R", "")
		var f reply.Failure
		if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || w.Code != test.status || f.Code != test.code {
			t.Errorf("%v: %d %s", test.err, w.Code, w.Body)
		}
	}
}

// A block is never a page: whatever its bytes are, a browser runs nothing of it.
func TestABlockIsNoPage(t *testing.T) {
	h := ask(&shop{}, guard.AllScopes, "GET", "/v1/blocks/"+blockCID.String(), "").Header()
	if h.Get("Content-Type") != mediaRaw || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || !strings.Contains(h.Get("Cache-Control"), "immutable") {
		t.Errorf("%v", h)
	}
}

// A long text lies in chunks: its block is their list, its payload the text.
func TestAPayloadInChunksIsGivenAsAWhole(t *testing.T) {
	text := strings.Repeat("long ", protocol.ChunkSize/4)
	root, blocks := cas.Payload([]byte(text))
	s := &shop{blocks: map[protocol.Link][]byte{}}
	for _, b := range blocks {
		s.blocks[b.Link] = b.Data
	}
	list := ask(s, guard.AllScopes, "GET", "/v1/blocks/"+root.String(), "")
	whole := ask(s, guard.AllScopes, "GET", "/v1/blocks/"+root.String()+"?payload=true", "")
	if list.Body.String() == text || list.Header().Get("Content-Type") != mediaCBOR {
		t.Errorf("the block is %d bytes of %s", list.Body.Len(), list.Header().Get("Content-Type"))
	}
	if whole.Body.String() != text || whole.Header().Get("Content-Type") != mediaRaw || whole.Header().Get("ETag") == list.Header().Get("ETag") {
		t.Errorf("the payload is %d bytes of %s, ETag %s", whole.Body.Len(), whole.Header().Get("Content-Type"), whole.Header().Get("ETag"))
	}
}

// What was sent until a damaged block was met is no archive: the client must see that it is not whole.
func TestAnArchiveThatFailsBreaksOff(t *testing.T) {
	defer func() {
		if why := recover(); why != http.ErrAbortHandler {
			t.Errorf("the answer ended well: %v", why)
		}
	}()
	ask(&shop{}, guard.AllScopes, "GET", "/v1/runs/CUT/archive", "")
}
