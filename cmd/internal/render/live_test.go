package render

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// records holds blocks in memory.
type records map[protocol.Link][]byte

func (r records) Block(_ context.Context, l protocol.Link) ([]byte, error) { return r[l], nil }

func (r records) add(t *testing.T, record any) protocol.Link {
	t.Helper()
	b, err := cas.Encode(record)
	if err != nil {
		t.Fatal(err)
	}
	r[b.Link] = b.Data
	return b.Link
}

// Lines that scrolled out of the terminal could not be wiped.
func TestLiveScreenIsNoHigherThanTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := newLive(&Screen{Writer: &b, TTY: true, Width: 60}, Backdrop{Context: t.Context()}) // 24 rows
		for i := range 100 {
			l.Notice(api.Update{Step: fmt.Sprintf("part#1[%d]", i), Data: protocol.StepStarted{Role: "part", Visit: 1, Attempt: 1}})
		}
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		frames := strings.Split(b.String(), "\x1b[J")
		last := frames[len(frames)-1]
		if n := strings.Count(last, "\n"); n > 22 || !strings.Contains(last, "81 more are open") {
			t.Errorf("%d lines:\n%s", n, last)
		}
		l.Close()
	})
}

func TestWhoWatchesIsToldThatTheRunGoesOnWithoutThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := newLive(&Screen{Writer: &b, TTY: true, Width: 60}, Backdrop{Context: t.Context(), Blocks: records{}, Guest: true})
		l.Notice(api.Update{Step: "test#1", Data: protocol.StepStarted{Role: "test", Visit: 1, Attempt: 1}})
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		if !strings.Contains(b.String(), "· Ctrl-C leaves, the run goes on\n") {
			t.Errorf("have %q", b.String())
		}
		l.Close()
	})
}

func TestLiveScreenKeepsOpenStepsAtTheBottom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := records{}
		data := cas.Raw([]byte(`{"exit_code":1}`))
		store[data.Link] = data.Data
		red := store.add(t, protocol.StepRecord{
			Kind: protocol.KindStep, V: 1, Start: data.Link, Parents: []protocol.Link{data.Link}, Role: "test", Visit: 1,
			Via: protocol.ViaEdge, Data: data.Link, Status: protocol.StepOK,
		})
		var b bytes.Buffer
		l := newLive(&Screen{Writer: &b, TTY: true, Width: 60}, Backdrop{
			Context: t.Context(), Blocks: store, Edges: []protocol.Edge{{From: []string{"test"}, To: []string{"coder"}}},
		})
		l.Notice(api.Update{Step: "test#1", Data: protocol.StepStarted{Role: "test", Visit: 1, Attempt: 1}})
		l.Notice(api.Update{Step: "test#1", Data: protocol.Delta{Text: "one\ntwo\n"}})
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		if !strings.Contains(b.String(), "⠹ test#1       200ms  two\n─ 0 steps · 200ms · Ctrl-C suspends safely\n") {
			t.Errorf("the open step is not shown:\n%q", b.String())
		}
		b.Reset()
		l.Notice(api.Update{Step: "test#1", Data: protocol.StepCompleted{Record: red, MS: 250, Status: protocol.StepOK}})
		if want := "\x1b[2A\r\x1b[J  ✓ test#1       250ms  exit 1  " + red.Short() + "  two\n"; b.String() != want {
			t.Errorf("have %q, want %q", b.String(), want)
		}
		b.Reset()
		l.Notice(api.Update{Step: "coder#2", Data: protocol.StepStarted{
			Role: "coder", Visit: 2, Attempt: 1, EdgePrompt: protocol.NewText("fix the two tests that fail in the package words\nplease"),
		}})
		if !strings.HasPrefix(b.String(), "  ↺ coder#2      test → coder (visit 2): \"fix the two test…\n") {
			t.Errorf("the re-entry is not told in one line: %q", b.String())
		}
		l.Close()
		if !strings.HasSuffix(b.String(), "\x1b[2A\r\x1b[J") {
			t.Errorf("the bottom is not wiped: %q", b.String())
		}
	})
}
