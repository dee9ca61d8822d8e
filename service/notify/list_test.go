package notify

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// say appends events to the journal of a sink, a second apart.
func (b *bench) say(sink string, events ...protocol.Data) {
	b.t.Helper()
	j, err := openJournal(b.t.Context(), b.s, sink)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range events {
		b.at = b.at.Add(time.Second)
		if err := j.append(b.t.Context(), b.at, func(*State) []cas.Draft { return []cas.Draft{{Data: e}} }); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := j.keep(b.t.Context(), 1); err != nil {
		b.t.Fatal(err)
	}
}

func dueOf(id string, run protocol.RunID, seq protocol.Seq) protocol.DeliveryDue {
	return protocol.DeliveryDue{ID: id, Run: run, Seq: seq, Event: "x", On: protocol.OnDone}
}

func TestDeliveriesAreListedTheNewestFirst(t *testing.T) {
	b := newBench(t)
	sinks := []Configured{{Sink: protocol.Sink{Name: "ops", Webhook: "https://ops.example.com:8443/services/key?token=1"}, Journal: "ops"},
		{Sink: protocol.Sink{Name: "log", Command: "curl https://private"}, Journal: "log"}, {Sink: protocol.Sink{Name: "me", Desktop: true}, Journal: "me"}}
	b.say("ops", dueOf("msg_a", "A", 3), dueOf("msg_b", "B", 3), dueOf("msg_c", "A", 9))
	b.say("log", dueOf("msg_d", "B", 3), protocol.DeliveryFailed{ID: "msg_d", Next: b.at.Add(time.Hour).UnixMicro(), Error: "the command ended with 3: curl https://private"})
	b.say("gone", dueOf("msg_e", "A", 3))
	b.say("ops", protocol.Delivered{ID: "msg_b"}, protocol.DeliveryDead{ID: "msg_a", Error: "it answered 404 Not Found: no /services/key"})
	list := func(q api.NotificationQuery) *api.NotificationList {
		t.Helper()
		l, err := List(t.Context(), b.s, sinks, q)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	lines := func(l *api.NotificationList) (out []string) {
		for _, n := range l.Items {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %d %v %v %s", n.ID, n.Sink, n.Status, n.Attempts, n.Next != nil, n.Delivered != nil, n.Error)))
		}
		return out
	}
	want := []string{"msg_e gone waiting 0 false false", "msg_d log waiting 1 true false the command ended with 3: curl https://private",
		"msg_c ops waiting 0 false false", "msg_b ops delivered 0 false true", "msg_a ops dead 1 false false it answered 404 Not Found: no /services/key"}
	all := list(api.NotificationQuery{})
	if d := cmp.Diff(want, lines(all)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"msg_b ops delivered 0 false true", "msg_d log waiting 1 true false the command ended with 3: curl https://private"}, sorted(lines(list(api.NotificationQuery{Run: "B"})))); d != "" {
		t.Error(d)
	}
	for limit := 1; limit <= 6; limit++ {
		var got []string
		for q := (api.NotificationQuery{Part: api.Part{Limit: limit}}); ; {
			l := list(q)
			if got = append(got, lines(l)...); len(l.Items) > limit || len(got) > 5 {
				t.Fatalf("limit %d: %v", limit, got)
			}
			if q.After = l.Next; q.After == "" {
				break
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("limit %d: %s", limit, d)
		}
	}
	if _, err := List(t.Context(), b.s, sinks, api.NotificationQuery{Part: api.Part{After: "1.x"}}); protocol.CodeOf(err) != protocol.ErrUsage.Code {
		t.Errorf("a place that there is not: %v", err)
	}
	Outline(all, sinks)
	var to []string
	for _, s := range all.Sinks {
		to = append(to, s.Name+" "+s.To)
	}
	if d := cmp.Diff([]string{"ops https://ops.example.com:8443", "log a command", "me the desktop", "gone "}, to); d != "" {
		t.Error(d)
	}
	if got := strings.Join(lines(all), "\n"); strings.Contains(got, "private") || strings.Contains(got, "services") || !strings.Contains(got, "it answered 404 Not Found") || !strings.Contains(got, "the command ended with 3") {
		t.Errorf("others than the owner see\n%s", got)
	}
}

// A list goes on behind a place whatever became of what stood there: it was retried, or is kept no more.
func TestAListGoesOnBehindWhatIsGone(t *testing.T) {
	for name, gone := range map[string]func(*bench, string){
		"retried": func(b *bench, id string) { b.say("ops", protocol.DeliveryRevived{IDs: []string{id}, By: "ada"}) },
		"gone":    func(b *bench, id string) { b.say("ops", protocol.DeliveryDead{ID: id, Gone: true}) },
	} {
		b := newBench(t)
		const all = 2*api.MaxPart + 1
		j, err := openJournal(t.Context(), b.s, "ops")
		if err != nil {
			t.Fatal(err)
		}
		var drafts []cas.Draft
		for i := range all {
			drafts = append(drafts, cas.Draft{Data: dueOf(fmt.Sprintf("msg_%05d", i), protocol.RunID(fmt.Sprintf("R%d", i%7)), protocol.Seq(i+1))})
		}
		if err := j.append(t.Context(), b.at, func(*State) []cas.Draft { return drafts }); err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for q := (api.NotificationQuery{Part: api.Part{Limit: api.MaxPart}}); ; {
			l, err := List(t.Context(), b.s, nil, q)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, n := range l.Items {
				seen[n.ID]++
			}
			if q.After = l.Next; q.After == "" {
				break
			}
			gone(b, l.Items[len(l.Items)-1].ID)
		}
		for id, n := range seen {
			if n > 1 {
				t.Errorf("%s: %s is listed %d times", name, id, n)
			}
		}
		if len(seen) != all {
			t.Errorf("%s: %d of %d", name, len(seen), all)
		}
	}
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// Of what was delivered the last ones are kept, by the stored state too.
func TestOfWhatWasDeliveredTheLastIsKept(t *testing.T) {
	for _, n := range []int{maxDone - 1, maxDone, maxDone + 1} {
		b := newBench(t)
		j, err := openJournal(t.Context(), b.s, "ops")
		if err != nil {
			t.Fatal(err)
		}
		var drafts []cas.Draft
		for i := range n {
			id := fmt.Sprintf("msg_%03d", i)
			drafts = append(drafts, cas.Draft{Data: dueOf(id, "A", protocol.Seq(i+1))}, cas.Draft{Data: protocol.Delivered{ID: id}})
		}
		if err := j.append(t.Context(), b.at, func(*State) []cas.Draft { return drafts }); err != nil {
			t.Fatal(err)
		}
		for _, stored := range []bool{false, true} {
			l, err := List(t.Context(), b.s, nil, api.NotificationQuery{})
			if err != nil || len(l.Items) != min(n, maxDone) || l.Items[0].ID != fmt.Sprintf("msg_%03d", n-1) || l.Sinks[0].Delivered != int64(n) || len(l.Hooks().Sinks[0].Deliveries) > 0 {
				t.Errorf("of %d, stored %v: %d, %v", n, stored, len(l.Items), err)
			}
			if err := j.keep(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
}
