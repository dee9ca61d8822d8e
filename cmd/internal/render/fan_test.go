package render

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

func TestHowItemsStandIsToldInOrder(t *testing.T) {
	for want, counts := range map[string]map[string]int{
		"993 ok, 6 failed, 1 running":                      {"running": 1, "failed": 6, "ok": 993},
		"49 ok, 1 exit 1":                                  {"exit 1": 1, "ok": 49},
		"1 ok, 1 exit 1, 1 exit 2, 3 exit 3, 1 cut off":    {"exit 3": 3, "exit 1": 1, "ok": 1, "exit 2": 1, "cut off": 1},
		"1 ok, 10 with another exit code than 0, 2 failed": {"exit 1": 1, "exit 2": 2, "exit 3": 3, "exit 44": 4, "ok": 1, "failed": 2},
		"12,345 ok, 1,000 to come":                         {"ok": 12_345, toCome: 1_000},
		"1 skipped, 1 not over, 2 waiting, 1 odd":          {"odd": 1, "waiting": 2, "skipped": 1, "not over": 1},
		"": {},
	} {
		if got := tally(counts); got != want {
			t.Errorf("%v is told as %q, want %q", counts, got, want)
		}
	}
	for want, counts := range map[string]map[string]int{
		"ok":      {"ok": 3, "skipped": 1},
		"failed":  {"ok": 3, "failed": 1, "exit 1": 4, "running": 1},
		"red":     {"ok": 3, "exit 1": 1, "running": 1},
		"waiting": {"ok": 3, "waiting": 1, "running": 1},
		"running": {"ok": 3, "running": 1, toCome: 3},
		toCome:    {"ok": 3, toCome: 3},
	} {
		if got := worst(counts); got != want {
			t.Errorf("%v stands as %q, want %q", counts, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1_000: "1,000", 12_345_678: "12,345,678"} {
		if got := grouped(n); got != want {
			t.Errorf("%d is told as %s", n, got)
		}
	}
}

// item are the updates of an item of a fan-out of so many.
type items struct {
	t       *testing.T
	store   records
	ok, red protocol.Link
	seq     protocol.Seq
}

func newItems(t *testing.T) *items {
	x := &items{t: t, store: records{}}
	for code, to := range map[int]*protocol.Link{0: &x.ok, 3: &x.red} {
		data := cas.Raw(fmt.Appendf(nil, `{"exit_code":%d}`, code))
		x.store[data.Link] = data.Data
		*to = x.store.add(t, protocol.StepRecord{Kind: protocol.KindStep, V: 1, Start: data.Link, Parents: []protocol.Link{data.Link}, Role: "a", Visit: 1,
			Via: protocol.ViaEdge, Data: data.Link, Status: protocol.StepOK})
	}
	return x
}

func (x *items) say(r Reporter, i int, d protocol.Data) {
	x.seq++
	step := fmt.Sprintf("a#1[%d]", i)
	r.Notice(api.Update{Run: "RUN", Step: step, Data: d, Entry: &protocol.Entry{Event: protocol.Event{Seq: x.seq, TS: int64(x.seq) * 1000, Step: &step}}})
}

// perform has so many items of a fan-out performed: every hundredth is red, every 250th fails, and one answer is cut off.
func (x *items) perform(r Reporter, n int) {
	for i := range n {
		x.say(r, i, protocol.StepStarted{Role: "a", Visit: 1, Attempt: 1, Of: n})
		r.Notice(api.Update{Run: "RUN", Step: fmt.Sprintf("a#1[%d]", i), Data: protocol.Delta{Kind: "stdout", Text: "words of one\n"}})
		end := protocol.StepCompleted{Record: x.ok, Status: protocol.StepOK}
		switch {
		case i%250 == 249:
			end.Status = protocol.StepFailed
		case i%100 == 50:
			end.Record = x.red
		case i == 3:
			price := int64(7)
			x.say(r, i, protocol.Usage{Model: "m", Input: &price, Output: &price, Stop: protocol.StopLength})
		}
		x.say(r, i, end)
	}
	r.Close()
}

// However a run is shown while it goes on, a long fan-out is a few lines, below, at and beyond what is folded.
func TestLongFanOutsFoldEverywhere(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "")
	price := func(protocol.Usage) *int64 { return new(int64(420_000_000_000)) }
	for name, reporter := range map[string]func(*Screen, Backdrop) Reporter{
		"lines":  func(w *Screen, b Backdrop) Reporter { return &plainLines{w: w, Backdrop: b} },
		"live":   func(w *Screen, b Backdrop) Reporter { return newLive(w, b) },
		"groups": func(w *Screen, b Backdrop) Reporter { return &groups{w: w, Backdrop: b, lines: map[string][]string{}} },
		"stream": func(w *Screen, b Backdrop) Reporter { return &transcript{w: w, Backdrop: b} },
	} {
		for n, want := range map[int]string{
			FoldFrom:     "",
			FoldFrom + 1: `11 items: 10 ok, 1 cut off in \d+ms`,
			1_000:        `1,000 items: 985 ok, 10 exit 3, 1 cut off, 4 failed in \d\.\ds`,
		} {
			x := newItems(t)
			var b bytes.Buffer
			all := Backdrop{Context: t.Context(), Blocks: x.store, Fold: &Folder{}, Price: price}
			x.perform(reporter(&Screen{Writer: &b, Width: 120}, all), n)
			out := b.String()
			if want == "" {
				if single := strings.Count(out, "a#1[9]"); single == 0 || strings.Contains(out, "10 items") {
					t.Errorf("%s: %d items are folded:\n%s", name, n, out)
				}
				continue
			}
			if !regexp.MustCompile(want+`  in 7 \(cached –\) out 7  \$0\.42`).MatchString(out) || strings.Contains(out, "words of one") && name != "groups" {
				t.Errorf("%s: %d items are not told as %s:\n%s", name, n, want, out)
			}
			if named := len(regexp.MustCompile(`a#1\[\d+\]`).FindAllString(out, -1)); named > 6*oddMax {
				t.Errorf("%s: %d lines are of items", name, named)
			}
			if regexp.MustCompile(`✓ +a#1\[(50|3)\]`).MatchString(out) {
				t.Errorf("%s: an item that is to be looked at is green:\n%s", name, out)
			}
			if left := strings.Contains(out, "wf log RUN --all shows them"); left != (n == 1_000) {
				t.Errorf("%s: it says of %d items that some are left out: %v\n%s", name, n, left, out)
			}
		}
	}
}

// What ended before a reporter began counts, and what was not over when it closed is told.
func TestAFanOutGoesOnWhereItWas(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "")
	x := newItems(t)
	var b bytes.Buffer
	all := Backdrop{Context: t.Context(), Blocks: x.store, Fold: &Folder{}}
	past := seen(all.Saw)
	for i := range 20 {
		x.say(past, i, protocol.StepStarted{Role: "a", Visit: 1, Attempt: 1, Of: 30})
		x.say(past, i, protocol.StepCompleted{Record: x.red, Status: protocol.StepOK})
	}
	for _, unused := range []Reporter{&plainLines{w: &Screen{Writer: &b}, Backdrop: all}, &groups{w: &Screen{Writer: &b}, Backdrop: all}} {
		if unused.Close(); b.Len() > 0 {
			t.Errorf("where no event came since, %q is shown", &b)
		}
	}
	lines := &plainLines{w: &Screen{Writer: &b}, Backdrop: all}
	for i := 20; i < 28; i++ {
		x.say(lines, i, protocol.StepStarted{Role: "a", Visit: 1, Attempt: 1, Of: 30})
	}
	x.say(lines, 20, protocol.StepCompleted{Record: x.ok, Status: protocol.StepOK})
	x.say(lines, 21, protocol.StepCompleted{Record: x.red, Status: protocol.StepOK})
	x.say(lines, 22, protocol.WaitingFor{Kind: protocol.WaitQuestion})
	lines.Close()
	out := b.String()
	if !strings.Contains(out, "30 items: 1 ok, 21 exit 3, 5 not over, 1 waiting, 2 to come in") || !strings.Contains(out, "a#1[21]  completed") || strings.Contains(out, "more items") {
		t.Errorf("it is told as\n%s", out)
	}
}

// seen is a reporter of what is not shown.
type seen func(api.Update)

func (s seen) Notice(u api.Update) { s(u) }
func (s seen) Close()              {}

// 10,000 steps are a line of a table, with the odd ones below it, and what it costs.
func TestATableOfTenThousandItems(t *testing.T) {
	var b bytes.Buffer
	p := &Printer{Out: &Screen{Writer: &b}}
	var steps []*api.Step
	for i := range 9_000 {
		s := &api.Step{ID: fmt.Sprintf("a#1[%d]", i), Item: &i, Action: protocol.ActRun, Status: "ok", CID: new("x"), Output: protocol.JSON(`{"exit_code":0}`)}
		switch {
		case i == 5:
			s.Output = protocol.JSON(`{"exit_code":3}`)
		case i == 6:
			s.CutOff = true
		case i%1_000 == 999:
			s.Status, s.Error, s.Child = "failed", &protocol.ErrorInfo{Message: "it broke\x1b[2J"}, "CHILD"
		case i == 8_998:
			s.Status, s.CID = "running", nil
		}
		steps = append(steps, s)
	}
	fans := p.Fans(steps)
	fans["a#1"].Of, fans["a#1"].Span, fans["a#1"].Cost = 10_000, 12_300_000_000, "$0.42"
	if err := p.stepTable("RUN", steps, fans); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if want := "  ✗  a#1        12.3s  10,000 items: 8,988 ok, 1 exit 3, 1 cut off, 9 failed, 1 running, 1,000 to come  $0.42"; lines[0] != want {
		t.Errorf("have %q, want %q", lines[0], want)
	}
	if len(lines) != 13 || !strings.Contains(lines[1], "!  a#1[5] ") || !strings.Contains(lines[2], "!  a#1[6] ") || !strings.Contains(lines[3], `it broke\u001b[2J  wf show CHILD`) ||
		!strings.Contains(lines[11], "… 1 more of a#1: wf show 'RUN:a#1' shows them") {
		t.Errorf("the table is\n%s", b.String())
	}
}
