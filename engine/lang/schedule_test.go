package lang_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine/lang"
	"wf/protocol"
)

const scheduled = `wf: 1
name: nightly
on: {schedule: "30 2 * * mon-fri"}
inputs: {n: {type: integer, default: 1}}
roles: {a: {run: "true"}}
`

func TestASchedule(t *testing.T) {
	plain := strings.Replace(scheduled, `on: {schedule: "30 2 * * mon-fri"}`+"\n", "", 1)
	for _, test := range []struct {
		name, from, to string
		want           *protocol.Schedule
		wrong          string
	}{
		{"a cron expression", "", "", &protocol.Schedule{Cron: "30 2 * * mon-fri"}, ""},
		{"with its zone", `"30 2 * * mon-fri"`, `{cron: "@daily", timezone: Europe/Berlin}`, &protocol.Schedule{Cron: "@daily", Timezone: "Europe/Berlin"}, ""},
		{"in UTC, said or not", `"30 2 * * mon-fri"`, `{cron: "@daily", timezone: UTC}`, &protocol.Schedule{Cron: "@daily"}, ""},
		{"unquoted", `"30 2 * * mon-fri"`, `30 2 1 * *`, &protocol.Schedule{Cron: "30 2 1 * *"}, ""},
		{"on, which YAML 1.1 takes for true", "on:", "'on':", &protocol.Schedule{Cron: "30 2 * * mon-fri"}, ""},
		{"nothing", "schedule: \"30 2 * * mon-fri\"", "", nil, ""},
		{"too few fields", "30 2 * * mon-fri", "30 2", nil, "3:16: error[WF033]: on.schedule: cron \"30 2\": want 5 fields"},
		{"a day that is none", "30 2 * * mon-fri", "0 0 31 2 *", nil, "there is no such day"},
		{"an unknown zone", `"30 2 * * mon-fri"`, `{cron: "@daily", timezone: Mars/Olympus}`, nil, `3:43: error[WF033]: on.schedule: there is no time zone "Mars/Olympus"`},
		{"the zone of the machine", `"30 2 * * mon-fri"`, `{cron: "@daily", timezone: Local}`, nil, `no time zone "Local"`},
		{"no cron", `"30 2 * * mon-fri"`, `{timezone: UTC}`, nil, `lacks the key "cron"`},
		{"an input that nobody gives", "default: 1", "required: true", nil, "4:39: error[WF033]: inputs.n is required, and a schedule gives no inputs"},
		{"another trigger", "schedule:", "mail:", nil, `unknown key "mail"`},
		{"what overlaps and was missed", `"30 2 * * mon-fri"`, `{cron: "@daily", overlap: queue, catch_up: all}`, &protocol.Schedule{Cron: "@daily", Overlap: "queue", CatchUp: "all"}, ""},
		{"the same as if nothing were said", `"30 2 * * mon-fri"`, `{cron: "@daily", overlap: allow, catch_up: last}`, &protocol.Schedule{Cron: "@daily"}, ""},
		{"an overlap that there is not", `"30 2 * * mon-fri"`, `{cron: "@daily", overlap: no}`, nil, "one of allow, skip, queue"},
		{"a list", `"30 2 * * mon-fri"`, `["@daily"]`, nil, "on.schedule wants a string or a mapping, got a list"},
	} {
		p, ds := lang.Load([]byte(strings.Replace(scheduled, test.from, test.to, 1)), lang.Options{})
		var out strings.Builder
		lang.Render(&out, []byte(scheduled), ds, false)
		if test.wrong != "" {
			if p != nil || !strings.Contains(out.String(), test.wrong) {
				t.Errorf("%s: want %s, have\n%s", test.name, test.wrong, &out)
			}
			continue
		}
		if p == nil {
			t.Errorf("%s:\n%s", test.name, &out)
			continue
		}
		if d := cmp.Diff(test.want, p.Workflow.Schedule); d != "" {
			t.Errorf("%s: %s", test.name, d)
		}
	}
	if cidOf(t, []byte(scheduled), nil) == cidOf(t, []byte(plain), nil) {
		t.Error("a schedule is no part of the definition")
	}
}
