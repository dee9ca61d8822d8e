package service

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/config"
	"wf/api"
	"wf/protocol"
)

func TestRetentionDeletesWhatHasEndedLongAgoAndNothingElse(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	row := func(id protocol.RunID, status protocol.RunStatus, age time.Duration, more ...func(*api.Row)) api.Row {
		r := api.Row{ID: id, Workflow: "w", Status: status, Updated: now.Add(-age).Format(time.RFC3339Nano)}
		for _, f := range more {
			f(&r)
		}
		return r
	}
	rows := []api.Row{
		row("young", protocol.Done, 30*day-time.Second),
		row("old", protocol.Done, 30*day),
		row("kept", protocol.Done, 40*day, func(r *api.Row) { r.Tags = []string{"x", config.Keep} }),
		row("driven", protocol.Done, 40*day, func(r *api.Row) { r.Driven = new(true) }),
		row("child", protocol.Done, 40*day, func(r *api.Row) { r.Parent = new("old:a#1") }),
		row("another child", protocol.Done, 40*day, func(r *api.Row) { r.Parent = new("old:a#2") }),
		row("failed", protocol.Failed, 40*day),
		row("waits", protocol.Waiting, 400*day),
		row("suspended", protocol.Suspended, 400*day),
		row("running", protocol.Running, 400*day),
		row("other", protocol.Done, 50*day, func(r *api.Row) { r.Workflow = "o" }),
		row("failed long ago", protocol.Failed, 91*day),
		row("cancelled", protocol.Cancelled, 1000*day),
	}
	for _, c := range []struct {
		name string
		r    config.Retention
		want []protocol.RunID
	}{
		{"nothing is said", config.Retention{}, nil},
		{"how many stay alone", config.Retention{KeepLast: 1}, nil},
		{"done", config.Retention{Done: config.Age(30 * day)}, []protocol.RunID{"old", "other"}},
		{"done and failed", config.Retention{Done: config.Age(30 * day), Failed: config.Age(90 * day)}, []protocol.RunID{"old", "other", "failed long ago"}},
		{"the newest of each workflow stay", config.Retention{Done: config.Age(30 * day), Failed: config.Age(90 * day), KeepLast: 2}, []protocol.RunID{"failed long ago"}},
		{"those of sub-workflows are not counted", config.Retention{Failed: config.Age(40 * day), KeepLast: 6}, nil},
		{"less than the floor", config.Retention{Done: config.Age(time.Second), Floor: config.Age(45 * day)}, []protocol.RunID{"other"}},
		{"the floor where none is said", config.Retention{Cancelled: config.Age(time.Second)}, []protocol.RunID{"cancelled"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := expired(c.r, rows, now)
			if err != nil {
				t.Fatal(err)
			}
			var ids []protocol.RunID
			for _, x := range got {
				ids = append(ids, x.Run)
			}
			if d := cmp.Diff(c.want, ids); d != "" {
				t.Error(d)
			}
		})
	}
	if got, err := expired(config.Retention{Done: config.Age(time.Second)}, []api.Row{row("an hour", protocol.Done, 24*time.Hour-time.Second)}, now); err != nil || len(got) > 0 {
		t.Errorf("within a day: %v, %v", got, err)
	}
	files, err := agedFiles(config.Retention{Files: config.Age(40 * day)}, rows, now)
	if d := cmp.Diff([]protocol.RunID{"driven", "child", "another child", "failed", "other", "failed long ago", "cancelled"}, files); d != "" || err != nil {
		t.Errorf("files of 40 days: %s %v", d, err)
	}
	if files, err := agedFiles(config.Retention{Done: config.Age(day)}, rows, now); len(files) > 0 || err != nil {
		t.Errorf("files that stay: %v %v", files, err)
	}
}
