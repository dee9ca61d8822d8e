package servicetest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/store"
)

// Tasks checks what a service says of the tasks of runs. open gives one with the store that it answers for,
// which holds no runs.
func Tasks(t *testing.T, open func(t *testing.T) (api.Service, store.Store)) {
	s, store := open(t)
	j := must(store.Journal(t.Context(), "RUN"))(t)
	at := int64(1_700_000_000_000_000)
	say := func(step string, list ...protocol.Data) {
		t.Helper()
		drafts := make([]cas.Draft, len(list))
		for i, d := range list {
			drafts[i] = cas.Draft{Step: step, Data: d}
		}
		at += 1_500_000
		must(j.Append(t.Context(), at, drafts, nil))(t)
	}
	long := strings.Repeat("It rained. ", 200_000) // 2.2 MB: more than one of them makes another part
	say("a#1", protocol.TaskStarted{ID: "a#1", Goal: "Count sheep", Original: protocol.NewText(long)},
		protocol.Usage{Model: "openai/gpt-5", Input: new(int64(1000)), Cached: new(int64(400)), Output: new(int64(50))},
		protocol.Usage{Model: "openai/gpt-5", Kind: "summary", Input: new(int64(10)), Output: new(int64(5))})
	say("b#1", protocol.TextSaid{Content: protocol.NewText("of no task")})
	say("a#1", protocol.TaskStateUpdated{ID: "a#1", State: protocol.NewText("at nine"), Shared: protocol.NewText(`{"sheep":9}`)})
	say("a#1", protocol.TaskDone{ID: "a#1", FinalResponse: protocol.NewText(long), Summary: protocol.NewText("There are ten.")})
	say("a#2", protocol.TaskStarted{ID: "a#2", Goal: "Ask", Original: protocol.NewText(long)}, protocol.TaskWaitingOn{ID: "a#2", Question: protocol.NewText("Which?")})
	say("a#3", protocol.TaskStarted{ID: "a#3", Goal: "Nothing yet"}, protocol.Usage{Model: "nobody/x"})

	price, none := json.Number("0.0013625"), json.Number("0")
	want := []*api.Task{
		{ID: "a#1", Goal: "Count sheep", Status: protocol.TaskCompleted, Original: long, State: "at nine", FinalResponse: long, Summary: "There are ten.",
			Shared: protocol.JSON(`{"sheep":9}`), Created: "2023-11-14T22:13:21.500000Z", Completed: new("2023-11-14T22:13:26.000000Z"), Seconds: new(int64(4)),
			Cost: &api.CostRow{Calls: 2, Input: 1010, Cached: 400, Output: 55, CostUSD: &price, KnownUSD: price}},
		{ID: "a#2", Goal: "Ask", Status: protocol.TaskWaiting, Original: long, Question: "Which?", Created: "2023-11-14T22:13:27.500000Z", Cost: &api.CostRow{CostUSD: &none, KnownUSD: none}},
		{ID: "a#3", Goal: "Nothing yet", Status: protocol.TaskActive, Created: "2023-11-14T22:13:29.000000Z", Cost: &api.CostRow{Calls: 1, Unreported: 1, KnownUSD: none}},
	}
	all := must(s.Tasks(t.Context(), "RUN", api.Part{}))(t)
	if d := cmp.Diff(&api.TaskList{Schema: "wf.tasks/v1", Run: "RUN", Items: want}, all); d != "" {
		t.Errorf("%.3000s", d)
	}
	for i, x := range want {
		if d := cmp.Diff(&api.RunTask{Schema: "wf.task/v1", Run: "RUN", Task: x}, must(s.Task(t.Context(), "RUN", x.ID))(t)); d != "" {
			t.Errorf("%.3000s", d)
		}
		part := must(s.Tasks(t.Context(), "RUN", api.Part{Limit: 1, After: all.Next}))(t)
		if all.Next = part.Next; len(part.Items) != 1 || part.Items[0].ID != x.ID || (part.Next == "") != (i == len(want)-1) {
			t.Errorf("part %d has %d tasks, then %q", i, len(part.Items), part.Next)
		}
	}
	fails(t, "a task that there is not", second(s.Task(t.Context(), "RUN", "b#1")), protocol.ErrNotFound)
	fails(t, "behind no task", second(s.Tasks(t.Context(), "RUN", api.Part{After: "b#1"})), protocol.ErrNotFound)
	fails(t, "tasks of no run", second(s.Tasks(t.Context(), "NONE", api.Part{})), protocol.ErrUnknownRun)
	fails(t, "a task of no run", second(s.Task(t.Context(), "NONE", "a#1")), protocol.ErrUnknownRun)
}

func second[T any](_ T, err error) error { return err }
