package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// Every sentinel of protocol has one exit status.
func TestEveryErrorHasItsExitStatus(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../protocol/error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]int{}
	for _, e := range exits {
		for _, code := range e.codes {
			listed[code]++
		}
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok || len(lit.Elts) != 3 {
			return true
		}
		code, err := strconv.Unquote(lit.Elts[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if listed[code] != 1 {
			t.Errorf("code %s stands %d times in the table of exit statuses", code, listed[code])
		}
		return true
	})
	if found < 15 {
		t.Errorf("found only %d sentinels in protocol/error.go", found)
	}
}

func TestExitStatus(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want int
	}{
		{"no error", nil, 0},
		{"an error without a code", errors.New("x"), 1},
		{"a wrapped sentinel", fmt.Errorf("run x: %w", protocol.ErrBusy), 5},
		{"a sentinel with another message", fail(protocol.ErrWaiting, "", "waits"), 8},
		{"an error that the answer has told", silent{protocol.ErrVerify}, 7},
		{"Ctrl-C", signalled{2}, 130},
		{"SIGHUP", interrupted{fail(errRunSuspended, "", "x"), signalled{1}}, 129},
		{"SIGTERM", interrupted{fail(errRunSuspended, "", "x"), signalled{15}}, 143},
		{"a cancelled context", fmt.Errorf("x: %w", context.Canceled), 130},
	} {
		if got := statusOf(test.err); got != test.want {
			t.Errorf("%s: exit %d, want %d", test.name, got, test.want)
		}
	}
}

func TestEveryCommandShowsAnExample(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() && c.Example == "" && c.Name() != "help" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		if c.Short == "" {
			t.Errorf("%s says nothing about itself", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(newApp(os.Stdin, os.Stdout, os.Stderr)))
}

func TestReferencesToTheLatestRunAreNoFlags(t *testing.T) {
	root := newRoot(newApp(os.Stdin, os.Stdout, os.Stderr))
	for _, test := range []struct{ in, want string }{
		{"show -1", "show @-1"},
		{"show -12:coder#2 -o json", "show @-12:coder#2 -o json"},
		{"replay -1 --from -1", "replay @-1 --from -1"},
		{"ls -n -1", "ls -n -1"},
		{"log -f -1", "log -f @-1"},
		{"answer -1 -- -1", "answer @-1 -- -1"},
		{"show -1x", "show -1x"},
	} {
		got := strings.Join(latestRefs(root, strings.Fields(test.in)), " ")
		if got != test.want {
			t.Errorf("%s: have %q, want %q", test.in, got, test.want)
		}
	}
	if written("@-1:a#1") != "-1:a#1" || written("@home") != "@home" {
		t.Error("a rewritten argument does not come back as it was")
	}
}

func TestTextsCannotDriveTheTerminal(t *testing.T) {
	if got := visible("a\x1b[31mb\u009b\x07\tc\nd"); got != "a\\u001b[31mb\\u009b\\u0007\tc\nd" {
		t.Errorf("have %q", got)
	}
	for _, test := range []struct {
		in   string
		n    int
		want string
	}{
		{"one", 10, "one"}, {"one\ntwo", 10, "one …"}, {"übermäßig", 5, "über…"}, {"  \n x", 5, "x"}, {"", 5, ""},
	} {
		if got := oneLine(test.in, test.n); got != test.want {
			t.Errorf("%q in %d: have %q, want %q", test.in, test.n, got, test.want)
		}
	}
}

func TestTableKeepsItsColumns(t *testing.T) {
	var b bytes.Buffer
	if err := table(&b, [][]string{{"a", "\x1b[31mrot\x1b[0m", "x"}, {"日本", "b", "y"}, {"c"}}); err != nil {
		t.Fatal(err)
	}
	want := "a     \x1b[31mrot\x1b[0m  x\n日本  b    y\nc\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 12 * time.Millisecond: "12ms", 4100 * time.Millisecond: "4.1s",
		185 * time.Second: "3m05s", 130 * time.Minute: "2h10m", 72 * time.Hour: "3d",
	} {
		if got := span(d); got != want {
			t.Errorf("%d: have %s, want %s", d, got, want)
		}
	}
}

// noBlocks is a store without blocks.
type noBlocks struct{}

func (noBlocks) Block(context.Context, protocol.Link) ([]byte, error) {
	return nil, protocol.ErrNotFound
}

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
		l := newLive(&screen{Writer: &b, tty: true, width: 60}, backdrop{ctx: t.Context()}) // 24 rows
		for i := range 100 {
			l.notice(api.Update{Step: fmt.Sprintf("part#1[%d]", i), Data: protocol.StepStarted{Role: "part", Visit: 1, Attempt: 1}})
		}
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		frames := strings.Split(b.String(), "\x1b[J")
		last := frames[len(frames)-1]
		if n := strings.Count(last, "\n"); n > 22 || !strings.Contains(last, "81 more are open") {
			t.Errorf("%d lines:\n%s", n, last)
		}
		l.close()
	})
}

func TestWhoWatchesIsToldThatTheRunGoesOnWithoutThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := newLive(&screen{Writer: &b, tty: true, width: 60}, backdrop{ctx: t.Context(), blocks: records{}, guest: true})
		l.notice(api.Update{Step: "test#1", Data: protocol.StepStarted{Role: "test", Visit: 1, Attempt: 1}})
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		if !strings.Contains(b.String(), "· Ctrl-C leaves, the run goes on\n") {
			t.Errorf("have %q", b.String())
		}
		l.close()
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
		l := newLive(&screen{Writer: &b, tty: true, width: 60}, backdrop{
			ctx: t.Context(), blocks: store, edges: []protocol.Edge{{From: []string{"test"}, To: []string{"coder"}}},
		})
		l.notice(api.Update{Step: "test#1", Data: protocol.StepStarted{Role: "test", Visit: 1, Attempt: 1}})
		l.notice(api.Update{Step: "test#1", Data: protocol.Delta{Text: "one\ntwo\n"}})
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		if !strings.Contains(b.String(), "⠹ test#1       200ms  two\n─ 0 steps · 200ms · Ctrl-C suspends safely\n") {
			t.Errorf("the open step is not shown:\n%q", b.String())
		}
		b.Reset()
		l.notice(api.Update{Step: "test#1", Data: protocol.StepCompleted{Record: red, MS: 250, Status: protocol.StepOK}})
		if want := "\x1b[2A\r\x1b[J  ✓ test#1       250ms  exit 1  " + red.Short() + "  two\n"; b.String() != want {
			t.Errorf("have %q, want %q", b.String(), want)
		}
		b.Reset()
		l.notice(api.Update{Step: "coder#2", Data: protocol.StepStarted{
			Role: "coder", Visit: 2, Attempt: 1, EdgePrompt: protocol.NewText("fix the two tests that fail in the package words\nplease"),
		}})
		if !strings.HasPrefix(b.String(), "  ↺ coder#2      test → coder (visit 2): \"fix the two test…\n") {
			t.Errorf("the re-entry is not told in one line: %q", b.String())
		}
		l.close()
		if !strings.HasSuffix(b.String(), "\x1b[2A\r\x1b[J") {
			t.Errorf("the bottom is not wiped: %q", b.String())
		}
	})
}

func TestGroupsDoNotMixSteps(t *testing.T) {
	var b bytes.Buffer
	g := &groups{w: &screen{Writer: &b}, backdrop: backdrop{ctx: t.Context(), blocks: noBlocks{}}, lines: map[string][]string{}}
	entry := func(step string) *protocol.Entry { return &protocol.Entry{Event: protocol.Event{Step: &step}} }
	say := func(step string, d protocol.Data) {
		n := api.Update{Step: step, Data: d}
		if _, delta := d.(protocol.Delta); !delta {
			n.Entry = entry(step)
		}
		g.notice(n)
	}
	say("a#1", protocol.StepStarted{})
	say("b#1", protocol.StepStarted{})
	say("a#1", protocol.Delta{Text: "from a\n::error::no"})
	say("b#1", protocol.Delta{Text: "from b\n"})
	say("a#1", protocol.StepCompleted{Status: protocol.StepFailed})
	g.close()
	want := `::group::a#1  completed failed in 0ms
1970-01-01T00:00:00.000Z  a#1  started
  from a
  : :error: :no
1970-01-01T00:00:00.000Z  a#1  completed failed in 0ms
::endgroup::
::error title=a#1::step a#1 failed
::group::b#1  not over
1970-01-01T00:00:00.000Z  b#1  started
  from b
::endgroup::
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}
