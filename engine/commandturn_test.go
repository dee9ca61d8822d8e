package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/metrics"
	"testing"

	"wf/agentkit/prompt"
	"wf/protocol"
	"wf/roles"
)

// metered notes what this process has allocated, in bytes, when each command begins.
type metered struct {
	roles.Run
	at []uint64
}

func (m *metered) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	m.at = append(m.at, s[0].Value.Uint64())
	return m.Run.Perform(ctx, turn, emit)
}

// perStep is the mean of what the commands of 40 steps have allocated.
func (m *metered) perStep(first int) float64 { return float64(m.at[first+40]-m.at[first]) / 40 }

// A command of a long run costs what one of a short run does: its turn holds no more than its bound. Up to that it grows.
func TestF502ACommandCostsTheSameHoweverLongTheRunIs(t *testing.T) {
	steps := 500
	if os.Getenv("WF_LONG") != "" {
		steps = 2000
	}
	for size, first := range map[int]int{10: 380, 2000: 40} { // and the step before which the turn has all that it can have
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			b := newBench(t)
			m := &metered{Run: roles.Run{Messages: prompt.Within, Walls: roles.Bare{Name: "a test"}}}
			b.e.Performers[protocol.ActRun] = m
			_, v := b.run(fmt.Sprintf(`
wf: 1
name: loop
limits: {steps: %d}
roles:
  a: {run: "printf '%%0%dd' 7", sandbox: off}
  b: {run: "wc -c", sandbox: off}
edges:
  - {from: START, to: a}
  - {from: a, to: a, limit: %d, on_limit: b}
  - {from: b, to: END}
`, steps+10, size, steps), nil)
			if early, late := m.perStep(first), m.perStep(steps-41); late > 1.2*early {
				t.Errorf("a command allocates %.0f bytes after %d steps, %.0f after %d", late, steps-40, early, first)
			}
			var turn int
			if err := json.Unmarshal([]byte(v.Steps[len(v.Steps)-1].Text), &turn); err != nil || turn > 66<<10 || turn < 40<<10 {
				t.Errorf("the last turn has %d bytes (%v)", turn, err)
			}
		})
	}
}
