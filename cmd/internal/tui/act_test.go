package tui_test

import (
	"fmt"
	"strings"
	"testing"

	"wf/api"
	"wf/cmd/internal/screentest"
	"wf/cmd/internal/tui"
	"wf/protocol"
)

func TestRunsAreMovedByKeys(t *testing.T) {
	source := newShelf()
	s := show(t, source, 100, 24)
	s.Shows("Output of AAAA coder#2")
	next := func(want string) {
		t.Helper()
		if got := <-source.answered; got != want {
			t.Errorf("it did %q, want %q", got, want)
		}
	}
	s.Press("R")
	next("resume AAAA")
	s.Shows("run AAAA goes on")

	s.Press("X")
	s.Shows("Cancel run AAAA?")
	s.Shows("run AAAA (repair the parser) is cancelled permanently")
	s.Press("n")
	s.Shows("nothing was done")
	s.Press("X")
	s.Shows("Cancel run AAAA?")
	s.Press("y")
	next("cancel AAAA")
	s.Shows("run AAAA is cancelled")

	s.Press("D")
	s.Shows("with 2 runs of its sub-workflows")
	s.Shows("y deletes AAAA")
	s.Press(screentest.Esc)
	s.Shows("nothing was done")
	s.Press("F")
	s.Shows("Fork run AAAA at coder#2?")
	s.Press("h")
	next("fork AAAA at coder#2, hold true")
	s.Shows("Output of FFFF forked#1") // it is chosen
	s.Shows("run FFFF is a fork of AAAA at coder#2; R goes on with it; warning: its files moved")
	s.Shows("! no process has driven the run yet")
	s.Press("F")
	s.Shows("Fork run FFFF at forked#1?")
	s.Press("y")
	next("fork FFFF at forked#1, hold false")
	s.Shows("run FFFF is a fork of FFFF at forked#1") // until that is said, it is still to be chosen

	s.Press("1gD")
	s.Shows("y deletes AAAA")
	s.Press("y")
	next("delete AAAA")
	s.Hides("✓ AAAA")
	s.Shows("Output of BBBB") // the next one has its place
	select {
	case more := <-source.answered:
		t.Errorf("it did %q too", more)
	default:
	}
}

// A question that comes late takes no key of what was begun meanwhile.
func TestALateQuestionTakesNoKeyOfAForm(t *testing.T) {
	source := newShelf()
	source.slow = make(chan struct{})
	s := show(t, source, 100, 24)
	s.Shows("AAAA")
	s.Press("j2")
	s.Shows("⏸ editor#1")
	s.Press("Da")
	s.Shows("1  Yes")
	close(source.slow)
	s.Shows("run BBBB was not deleted: press D again")
	s.Press("yes\r")
	if got, want := <-source.answered, "editor#1=yes"; got != want {
		t.Errorf("it did %q, want %q", got, want)
	}
}

// What goes wrong is on the screen as a whole, with what to do about it, and nothing of it acts on the terminal.
func TestARefusalIsShownAsAWhole(t *testing.T) {
	source := newShelf()
	source.refuses = protocol.ErrNotFinal.With("the way out", "first words %s last words\x1b[2J\x1b]0;owned\a", strings.Repeat("日本 and so on ", 60))
	s := show(t, source, 80, 24)
	s.Shows("Output of AAAA")
	s.Press("R")
	<-source.answered
	s.Shows("first words")
	s.Shows("last words")
	s.Shows("fix: the way out")
	s.Press(screentest.Esc)
	s.Shows("! shows all")
	now := s.Hides("fix: the way out")
	if !strings.Contains(now, "Runs (2)") {
		t.Errorf("the screen was cleared:\n%s", now)
	}
	s.Press("j")
	s.Hides("first words")
	s.Press("!")
	s.Shows("last words")
	s.Resize(40, 8) // all of it can be read there too
	s.Shows("first words")
	s.Press("G")
	s.Shows("fix: the way out")
}

func TestAFormIsFilledInOnTheScreen(t *testing.T) {
	source := newShelf()
	q := &source.runs[1].Waiting[0]
	q.Question, q.Form = strings.Repeat("Publish this? ", 100), protocol.JSON(`{"type":"object","required":["why","n"],"properties":{"n":{"type":"integer","minimum":3},"why":{"type":"string"}},"x-order":["why","n"]}`)
	for _, size := range [][2]int{{100, 24}, {80, 24}, {40, 14}} {
		s := show(t, source, size[0], size[1])
		s.Shows("AAAA")
		s.Press("j2")
		s.Shows("⏸ editor#1")
		s.Press("a")
		s.Shows("1  Yes")
		s.Press("2\r")
		s.Shows("why  string, required")
		s.Press("世界\x1b\r2\r") // Alt+Enter
		s.Shows("n  integer, required")
		s.Press("1\r")
		s.Shows("minimum: got 1, want 3")
		s.Press("\x7f7\r")
		if got, want := <-source.answered, `editor#1=no {"n":7,"why":"世界\n2"}`; got != want {
			t.Errorf("answered %s, want %s", got, want)
		}
		s.Shows("answered editor#1")
		s.Press("a")
		s.Shows("1  Yes")
		s.Press(screentest.Esc)
		s.Shows("left open: a answers it")
		s.Press("q")
		if err := s.Ended(); err != nil {
			t.Error(err)
		}
	}
}

// The keys are all there on a small screen, by scrolling.
func TestTheKeysAreListedOnSmallScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 10}} {
		s := show(t, newShelf(), size[0], size[1])
		s.Shows("? keys")
		s.Press("?")
		s.Shows("go to runs, steps")
		s.Press("G")
		now := s.Shows("q             leave")
		for l := range strings.Lines(now) {
			if n := len([]rune(strings.TrimRight(l, "\n"))); n > size[0] {
				t.Errorf("%d cells of %d: %s", n, size[0], l)
			}
		}
		s.Press("x")
		s.Hides("q             leave")
	}
}

// Long lists are read in parts, as far as the choice comes.
func TestTenThousandRunsAreReadInParts(t *testing.T) {
	source := newShelf()
	source.runs, source.part = nil, 300
	for i := range 10_000 {
		id := protocol.RunID(fmt.Sprintf("R%05d", i))
		source.runs = append(source.runs, &api.Run{ID: id, Workflow: "many", Info: api.RunInfo{Title: fmt.Sprintf("job %05d 日本語", i)}, Status: protocol.Done,
			Updated: fmt.Sprintf("2026-01-01T00:00:%02d.%06dZ", (10_000-i)/1000, (10_000-i)%1000), Steps: []*api.Step{{ID: "a#1", Status: "ok"}}})
	}
	s := show(t, source, 100, 24)
	s.Shows("Output of R00000 a#1")
	s.Shows("Runs (300+)")
	s.Press("G")
	s.Shows("Output of R00299 a#1")
	s.Shows("300 of 600+")
	s.Press(strings.Repeat("\x1b[6~", 60))
	s.Shows("Runs (900+)")
	s.Press("/job 09999")
	s.Shows(`Runs with "job 09999" (1 of`) // it was looked for in all of them
	s.Shows("Output of R09999 a#1")
	s.Press(screentest.Esc)
	s.Shows("Runs (")
	s.Hides("▏")
	s.Press("g")
	s.Shows("Output of R00000 a#1")
	source.mu.Lock()
	defer source.mu.Unlock()
	for _, asked := range source.asked {
		var n int
		if _, err := fmt.Sscanf(asked[strings.LastIndex(asked, ": ")+2:], "%d", &n); err != nil || n > 300 {
			t.Fatalf("it asked for %s", asked)
		}
	}
}

func TestLongRunsAreReadInParts(t *testing.T) {
	source := newShelf()
	v := source.runs[0]
	v.Steps, source.events = nil, 250
	for i := range 5_000 {
		v.Steps = append(v.Steps, &api.Step{ID: fmt.Sprintf("a#%d", i+1), Status: "ok", CID: cid("abcdefgh"), Began: protocol.Seq(2*i + 2), Ended: protocol.Seq(2*i + 3)})
	}
	v.Steps[4_999].Status, v.Steps[4_999].Output, v.Steps[4_999].Action, v.Steps[4_999].Item = "ok", protocol.JSON(`{"exit_code":3}`), protocol.ActRun, new(0)
	s := show(t, source, 100, 24)
	s.Shows("Output of AAAA a#5000")
	s.Shows("! a#5000")
	s.Shows("exit 3")
	s.Shows("5000 of 5000")
	s.Press("2g")
	s.Shows("Output of AAAA a#4801")
	s.Shows("4801 of 5000")
	s.Press("k") // the part before it is read by now, or will be
	s.Press("g")
	s.Until("an earlier part", func(now string) bool {
		return strings.Contains(now, "4601 of 5000") || strings.Contains(now, "4401 of 5000")
	})
	source.mu.Lock()
	v.Steps = append(v.Steps[:5_000:5_000], &api.Step{ID: "b#1", Status: "running", Began: 20_000})
	v.Status = protocol.Running
	moved := source.moved["AAAA"]
	source.mu.Unlock()
	moved()
	s.Shows("· running")
	s.Shows("of 5001") // what was read before is still there
	s.Press("G")
	s.Shows("Output of AAAA b#1")
	more := func(role string, n int) { // that begin and end at once
		source.mu.Lock()
		at := v.Steps[len(v.Steps)-1].Began
		for i := range n {
			v.Steps = append(v.Steps[:len(v.Steps):len(v.Steps)], &api.Step{ID: fmt.Sprintf("%s#%d", role, i+1), Status: "ok", CID: cid("abcdefgh"), Began: at + protocol.Seq(2*i+1), Ended: at + protocol.Seq(2*i+2)})
		}
		moved := source.moved["AAAA"]
		source.mu.Unlock()
		moved()
		s.Shows(fmt.Sprintf("Output of AAAA %s#%d", role, n))
	}
	more("c", 300) // more than are read again: what is between is read too
	s.Shows("5301 of 5301")
	s.Press("g")
	s.Until("what was read before", func(now string) bool {
		return strings.Contains(now, "4601 of 5301") || strings.Contains(now, "4401 of 5301")
	})
	s.Press("G")
	s.Shows("Output of AAAA c#300")
	more("d", 2_001) // too many: the run is read anew
	s.Shows("7302 of 7302")
	s.Press("g")
	s.Shows("Output of AAAA d#1681") // from b#1 on, which goes on, it would have been 321
	s.Shows("6982 of 7302")
	s.Press("G")
	s.Shows("Output of AAAA d#2001")
	s.Press("e")
	s.Shows("events 151 to 250")
	s.Shows("< earlier")
	s.Press("<")
	s.Shows("events 51 to 150")
	s.Press("<")
	s.Shows("events 1 to 50")
	s.Press(">")
	s.Shows("events 51 to 150")
	s.Press(">")
	s.Shows("events 151 to 250")
	source.mu.Lock()
	defer source.mu.Unlock()
	for _, asked := range source.asked {
		var id string
		var n int
		if _, err := fmt.Sscanf(asked, "%s %d steps", &id, &n); err == nil && n > 400 {
			t.Fatalf("it asked for %s", asked)
		}
	}
}

// fanned makes a fan-out of so many items of the first run, of which each hundredth fails, in parts between a list and a sum.
func fanned(source *shelf, n int) {
	v := source.runs[0]
	v.Steps = []*api.Step{{ID: "list#1", Status: "ok", CID: cid("abcdefgh"), Began: 2, Ended: 3}}
	for i := range n {
		s := &api.Step{ID: fmt.Sprintf("work#1[%d]", i), Item: new(i), Status: "ok", CID: cid("bcdefghi"), Action: protocol.ActRun, Output: protocol.JSON(`{"exit_code":0,"text":"fine"}`), Began: protocol.Seq(2*i + 4), Ended: protocol.Seq(2*i + 5)}
		if i%100 == 77 {
			s.Status, s.Error = "failed", &protocol.ErrorInfo{Message: fmt.Sprintf("item %d broke", i)}
		}
		v.Steps = append(v.Steps, s)
	}
	v.Steps = append(v.Steps, &api.Step{ID: "sum#1", Status: "ok", CID: cid("abcdefgh"), Began: protocol.Seq(2*n + 4), Ended: protocol.Seq(2*n + 5)})
	source.items = n
}

// A fan-out is one line as soon as it has more than ten items, with those that failed below it; Space unfolds it.
func TestALongFanOutIsOneLine(t *testing.T) {
	for _, n := range []int{10, 11} {
		source := newShelf()
		fanned(source, n)
		s := show(t, source, 100, 40)
		s.Shows("Output of AAAA sum#1")
		now := s.Shows("list#1")
		if folded := strings.Contains(now, fmt.Sprintf("work#1 ▸ %d items: %d ok", n, n)); folded != (n > 10) || strings.Contains(now, "work#1[3]") == folded {
			t.Errorf("%d items are\n%s", n, now)
		}
	}
	for _, n := range []int{1_000, 10_000} {
		source := newShelf()
		fanned(source, n)
		source.early = make(chan struct{})
		s := show(t, source, 120, 40)
		s.Shows("Output of AAAA sum#1")
		s.Shows("work#1 ▸ reading its items …")
		s.Press("2gj") // keys do not wait for them
		s.Shows(fmt.Sprintf("Output of AAAA work#1[%d]", n-123))
		s.Press("G")
		s.Shows("Output of AAAA sum#1")
		close(source.early)
		count := map[int]string{1_000: "1,000 items: 990 ok, 10 failed", 10_000: "10,000 items: 9,900 ok, 100 failed"}[n]
		short := map[int]string{1_000: count, 10_000: "10,000: 100 failed"}[n] // there is no room for more
		now := s.Shows("work#1 ▸ " + short)
		if more := strings.Contains(now, "… more of them: Space"); !strings.Contains(now, "work#1[77]") || strings.Contains(now, "work#1[78]") || more != (n > 1_000) {
			t.Errorf("%d items are\n%s", n, now)
		}
		s.Press("2gj") // the fan-out
		s.Shows("work#1[177]  failed  item 177 broke")
		s.Press("F")
		s.Shows("choose an item to fork at")
		s.Press("m")
		s.Shows("each item has its own")
		s.Press("o ")
		s.Shows("work#1 ▾ " + short)
		s.Shows(fmt.Sprintf("of %d", n+3))
		s.Press("j")
		s.Shows("Output of AAAA work#1[77]") // what failed comes first
		s.Press("F")
		s.Shows("at work#1[77]?")
		s.Press("n")
		s.Press("Gk")
		s.Shows(fmt.Sprintf("Output of AAAA work#1[%d]", n-1))
		s.Press(" ")
		s.Shows("work#1 ▸ " + short)
		s.Shows("work#1  " + count)
		s.Shows("work#1[177]  failed  item 177 broke") // the fan-out is chosen
		source.mu.Lock()
		asked := 0
		for _, x := range source.asked {
			if strings.HasPrefix(x, "items of AAAA that began with 4") {
				asked++
			}
		}
		source.mu.Unlock()
		if asked != 1 {
			t.Errorf("it was asked %d times how many items there are", asked)
		}
	}
}

// What moves in a fan-out that is folded is counted, and an item that asks is shown to be answered.
func TestAFoldedFanOutIsFollowed(t *testing.T) {
	source := newShelf()
	fanned(source, 1_000)
	v := source.runs[0]
	v.Status, v.Steps = protocol.Running, v.Steps[:501] // list#1 and half of the items
	for _, s := range v.Steps[491:] {
		s.Status, s.CID, s.Ended = "running", nil, 0
	}
	s := show(t, source, 120, 40)
	s.Shows("work#1  1,000 items: 485 ok, 5 failed, 10 running, 500 to come")
	source.mu.Lock()
	now := *v.Steps[500]
	now.Status = "waiting"
	v.Steps[500], v.Status = &now, protocol.Waiting
	v.Waiting = []api.Waiting{{Step: now.ID, Question: "Go on?"}}
	moved := source.moved["AAAA"]
	source.mu.Unlock()
	moved()
	s.Shows("work#1 ▸ 1,000: 5 failed, 9 running, 1 ")
	s.Shows("⏸ Go on?") // the item that asks is the newest
	s.Press("2ga")      // wherever the choice is
	s.Shows("> ")
	s.Press("yes\r")
	if got := <-source.answered; got != "work#1[499]=yes" {
		t.Errorf("answered %q", got)
	}
}

func BenchmarkFoldedFanOut(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		for _, open := range []bool{false, true} {
			b.Run(fmt.Sprintf("items=%d/unfolded=%v", n, open), func(b *testing.B) {
				source := newShelf()
				fanned(source, n)
				app, press := tui.Settled(b.Context(), source)
				press('2')
				press('g')
				press('j')
				if open {
					press(' ')
				}
				b.ResetTimer()
				for range b.N {
					press('j')
					_ = app.View()
					press('k')
					_ = app.View()
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(2*b.N), "µs/key+frame")
			})
		}
	}
}
