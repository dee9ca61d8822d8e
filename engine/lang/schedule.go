package lang

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the same zones on every machine

	"wf/engine/yaml"
	"wf/protocol"
)

// decodeSchedule reads on.schedule: a cron expression, or one with its time zone (WF033). A
// workflow that the clock starts gets no inputs, and so none may be required.
func (l *loader) decodeSchedule(n *yaml.Node) {
	if !l.good(n) {
		return
	}
	s := protocol.Schedule{Cron: l.str(n)}
	at := n
	if n.Kind == yaml.Mapping {
		at = n.Get("cron")
		s = protocol.Schedule{Cron: l.str(at), Timezone: l.str(n.Get("timezone")), Overlap: l.str(n.Get("overlap")), CatchUp: l.str(n.Get("catch_up"))}
	}
	if s.Cron == "" {
		return // reported
	}
	if _, err := protocol.ParseCron(s.Cron); err != nil {
		l.report(at, Diagnostic{Code: "WF033", Message: "on.schedule: " + strings.TrimSuffix(err.Error(), ": "+protocol.ErrUsage.Message), Hint: `write minute hour day month weekday, such as "0 9 * * mon-fri"`})
	}
	// Local would be another zone on each machine.
	if _, err := time.LoadLocation(s.Timezone); err != nil || s.Timezone == "Local" {
		l.report(n.Get("timezone"), Diagnostic{Code: "WF033", Message: fmt.Sprintf("on.schedule: there is no time zone %q", s.Timezone), Hint: "write a name such as Europe/Berlin"})
	}
	for _, name := range sortedKeys(l.w.Inputs) {
		if l.w.Inputs[name].Required {
			l.wrongAt(l.root.Get("inputs").Get(name).Get("required"), "WF033", fmt.Sprintf("inputs.%s is required, and a schedule gives no inputs", name), "give it a default")
		}
	}
	for _, unsaid := range []struct {
		value *string
		as    string
	}{{&s.Timezone, "UTC"}, {&s.Overlap, protocol.OverlapAllow}, {&s.CatchUp, protocol.CatchUpLast}} {
		if *unsaid.value == unsaid.as {
			*unsaid.value = "" // as if it were left out
		}
	}
	l.w.Schedule = &s
}
