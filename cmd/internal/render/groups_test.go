package render

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/protocol"
)

// noBlocks is a store without blocks.
type noBlocks struct{}

func (noBlocks) Block(context.Context, protocol.Link) ([]byte, error) {
	return nil, protocol.ErrNotFound
}

func TestGroupsDoNotMixSteps(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "true")
	var b bytes.Buffer
	g := &groups{w: &Screen{Writer: &b}, Backdrop: Backdrop{Context: t.Context(), Blocks: noBlocks{}}, lines: map[string][]string{}}
	entry := func(step string) *protocol.Entry { return &protocol.Entry{Event: protocol.Event{Step: &step}} }
	say := func(step string, d protocol.Data) {
		n := api.Update{Step: step, Data: d}
		if _, delta := d.(protocol.Delta); !delta {
			n.Entry = entry(step)
		}
		g.Notice(n)
	}
	say("a#1", protocol.StepStarted{})
	say("b#1", protocol.StepStarted{})
	say("a#1", protocol.Delta{Text: "from a\nstd::sort\n \t::error::no ##[error]no"})
	say("b#1", protocol.Delta{Text: "from b\n"})
	say("a#1", protocol.StepCompleted{Status: protocol.StepFailed})
	g.Close()
	want := `::group::a#1  completed failed in 0ms
1970-01-01T00:00:00.000Z  a#1  started
  from a
  std::sort
   	: :error::no ##\u005berror]no
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

// What a check writes is no command of GitHub, and nothing that a terminal acts on; elsewhere it is shown as it is.
func TestLinesOfChecksAreNoCommands(t *testing.T) {
	for _, x := range []struct{ actions, line, want string }{
		{"true", "::error::x", ": :error::x"},
		{"true", "\u00a0\t::stop-commands::x", "\u00a0\t: :stop-commands::x"},
		{"true", ":::set-output::x", ": ::set-output::x"},
		{"true", "a ##[add-mask]e ##[group]", `a ##\u005badd-mask]e ##\u005bgroup]`},
		{"true", "##[##[error]", `##\u005b##\u005berror]`},
		{"true", "\r::error::\x1b[31m", `\u000d::error::\u001b[31m`},
		{"true", "std::sort ## [x]", "std::sort ## [x]"},
		{"", "::error:: ##[x]\x1b", `::error:: ##[x]\u001b`},
	} {
		t.Setenv("GITHUB_ACTIONS", x.actions)
		var b bytes.Buffer
		(&Printer{Err: &Screen{Writer: &b}}).Said(x.line)
		if got := b.String(); got != x.want+"\n" {
			t.Errorf("%q is shown as %q, want %q", x.line, got, x.want)
		}
	}
}

// No text on a screen has a command of GitHub in the middle of a line, however it was written. JSON means the same as before.
func TestScreensHaveNoMarks(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "true")
	var b bytes.Buffer
	s := &Screen{Writer: &b}
	want, _ := json.Marshal("###[error]x ##[ #[ #### [ [##")
	for _, part := range bytes.SplitAfter(want, []byte("#")) {
		if _, err := s.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	var got string
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got != "###[error]x ##[ #[ #### [ [##" || bytes.Contains(b.Bytes(), []byte("##[")) {
		t.Errorf("%s shows %q: %v", b.Bytes(), got, err)
	}
}
