package render

import (
	"bytes"
	"context"
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
	say("a#1", protocol.Delta{Text: "from a\n::error::no"})
	say("b#1", protocol.Delta{Text: "from b\n"})
	say("a#1", protocol.StepCompleted{Status: protocol.StepFailed})
	g.Close()
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
