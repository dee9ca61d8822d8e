package rules_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"wf/engine/rules"
	"wf/protocol"
)

// O-06a: an event that no run writes that closes is refused, wherever it stands.
func TestO06aAJournalThatNoRunWritesThatCloses(t *testing.T) {
	const always = "wf: 1\nname: closes\nroles:\n  work: {set: {n: 1}}\n  tidy: {set: {n: 2}}\n  note: {set: {n: 3}}\nalways: [tidy, note]\n"
	const plain = "wf: 1\nname: plain\nroles:\n  work: {set: {n: 1}}\n"
	skipped, cancelled := protocol.ClosingSkipped{Code: protocol.SkippedByPerson}, protocol.CancelledBy{By: "ada"}
	var w *world
	var j []protocol.Entry
	event := func(step string, d protocol.Data) protocol.Entry {
		w.data = append(w.data, d)
		e := protocol.Entry{Event: protocol.Event{Type: d.EventType(), Data: []byte(strconv.Itoa(len(w.data) - 1))}}
		if step != "" {
			e.Step = &step
		}
		return e
	}
	at := func(typ protocol.EventType, step string) int {
		i := slices.IndexFunc(j, func(e protocol.Entry) bool { return e.Type == typ && e.StepName() == step })
		if i < 0 {
			t.Fatalf("no %s %s", typ, step)
		}
		return i
	}
	put := func(i int, e ...protocol.Entry) { j = slices.Insert(j, i, e...) }
	drop := func(from, to int) { j = slices.Delete(j, from, to) }
	move := func(from, to int) {
		e := j[from]
		drop(from, from+1)
		put(to, e)
	}
	for name, c := range map[string]struct {
		yaml   string
		change func()
		good   bool
	}{
		"as it was":               {always, func() {}, true},
		"skipped before any":      {always, func() { i := at(protocol.EvClosing, ""); drop(i+1, len(j)-1); put(i+1, event("", skipped)) }, true},
		"skipped in the middle":   {always, func() { i := at(protocol.EvStepStarted, "tidy#1"); drop(i+1, len(j)-1); put(i+1, event("", skipped)) }, true},
		"cancelled before a step": {always, func() { drop(1, len(j)); put(1, event("", cancelled)) }, true},

		"closing twice":          {always, func() { put(at(protocol.EvClosing, ""), j[at(protocol.EvClosing, "")]) }, false},
		"closing after the end":  {always, func() { put(len(j), j[at(protocol.EvClosing, "")]) }, false},
		"closing without always": {plain, func() { put(len(j)-1, event("", protocol.Closing{Status: protocol.Done})) }, false},
		"no closing":             {always, func() { drop(at(protocol.EvClosing, ""), len(j)-1) }, false},
		"cancelled, no closing":  {always, func() { i := at(protocol.EvClosing, ""); drop(i, len(j)); put(i, event("", cancelled)) }, false},
		"before closing":         {always, func() { move(at(protocol.EvClosing, ""), at(protocol.EvStepStarted, "note#1")) }, false},
		"other order": {always, func() {
			i := at(protocol.EvStepStarted, "note#1")
			put(at(protocol.EvStepStarted, "tidy#1"), j[i], j[i+1])
		}, false},
		"the graph goes on":     {always, func() { move(at(protocol.EvStepCompleted, "work#1"), at(protocol.EvClosing, "")) }, false},
		"the graph begins":      {always, func() { move(at(protocol.EvClosing, ""), 1) }, false},
		"one role is left out":  {always, func() { i := at(protocol.EvStepStarted, "note#1"); drop(i, i+2) }, false},
		"a role has not ended":  {always, func() { i := at(protocol.EvStepCompleted, "note#1"); drop(i, i+1) }, false},
		"skipped twice":         {always, func() { put(len(j)-1, event("", skipped), event("", skipped)) }, false},
		"asked while it closes": {always, func() { put(at(protocol.EvStepStarted, "note#1"), event("", protocol.CancelAsked{By: "ada"})) }, true},
		"asked twice": {always, func() {
			x := event("", protocol.CancelAsked{By: "ada"})
			put(at(protocol.EvStepStarted, "note#1"), x, x)
		}, false},
		"asked, not closing":   {always, func() { put(1, event("", protocol.CancelAsked{By: "ada"})) }, false},
		"skipped, not closing": {always, func() { put(1, event("", skipped)) }, false},
		"begins after skipped": {always, func() { put(at(protocol.EvStepStarted, "note#1"), event("", skipped)) }, false},
		"ends after skipped":   {always, func() { put(at(protocol.EvStepCompleted, "note#1"), event("", skipped)) }, false},
		"another status":       {always, func() { j[len(j)-1] = event("", protocol.Finished{Status: protocol.Failed}) }, false},
		"another result":       {always, func() { j[len(j)-1] = event("", protocol.Finished{Status: protocol.Done, Result: w.s.Start}) }, false},
		"cancelled instead":    {always, func() { j[len(j)-1] = event("", cancelled) }, false},
		"an always role, started": {plain, func() {
			put(len(j)-1, event("tidy#1", protocol.StepStarted{Role: "tidy", Via: protocol.ViaAlways, Edge: -1}))
		}, false},
	} {
		w = newWorld(t, c.yaml, nil)
		w.play()
		j = slices.Clone(w.journal)
		c.change()
		for i := range j {
			j[i].Seq = protocol.Seq(i + 1)
		}
		switch _, err := rules.Fold(w, each(j)); {
		case c.good && err != nil:
			t.Errorf("%s: %v", name, err)
		case !c.good && !errors.Is(err, protocol.ErrCorrupt) && !errors.Is(err, protocol.ErrNotFound):
			t.Errorf("%s: %v, want a journal that is corrupt", name, err)
		}
	}
}

// O-06a: the time before a further attempt of an always role counts as time of closing.
func TestO06aTheTimeBeforeAnAttemptCounts(t *testing.T) {
	w := newWorld(t, "wf: 1\nname: closes\nroles:\n  work: {set: {n: 1}}\n  tidy: {set: {n: 2}}\nalways: tidy\n", nil)
	for w.s.Closing == nil || w.s.Closing.Begun == 0 {
		p, err := w.s.Next()
		w.must(err)
		switch {
		case p.End != nil:
			w.closes(p.End)
		case len(p.Start) > 0:
			w.begin(p.Start[0])
		default:
			w.perform(p.Running[0].String())
		}
	}
	failed := w.s.TS + 1000
	w.sayAt(failed, "tidy#1", protocol.AttemptFailed{Attempt: 1, RetryAt: failed + protocol.ClosingTime/2})
	for at, want := range map[int64]bool{protocol.ClosingTime / 2: true, protocol.ClosingTime - 2000: true, protocol.ClosingTime: false} {
		if got := w.s.MayAwait(protocol.ViaAlways, failed, failed+at); got != want {
			t.Errorf("an attempt in %d µs: %v", at, got)
		}
	}
	if b := w.s.Breached(failed+protocol.ClosingTime-2000, 0, 0, false); b != nil {
		t.Errorf("%+v", b)
	}
	if b := w.s.Breached(failed+protocol.ClosingTime, 0, 0, false); b == nil || b.Limit != rules.BoundTime {
		t.Errorf("%+v", b)
	}
}
