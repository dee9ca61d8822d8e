package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

func aSweep(cells int) *api.Sweep {
	s := &api.Sweep{Schema: api.SweepSchema, Tag: "sweep-1", N: 5, Definitions: []api.SweepDefinition{{Name: "a.yaml"}, {Name: "evil\x1b[2J\u202e.yaml"}}}
	for i := range cells {
		long := ""
		if i == 0 {
			long = strings.Repeat("x", 5<<20)
		}
		s.Cells = append(s.Cells, api.SweepCell{Models: map[string]string{"": "openai/\x1b]0;x\a"}, Definition: i % 2, Inputs: protocol.JSON(fmt.Sprintf(`{"k":%d,"text":"two\nlines \u001b[31m%s"}`, i, long))})
		for n := range 5 {
			s.Trials = append(s.Trials, api.SweepTrial{Cell: i, N: n + 1, State: api.SweepPassed, Run: "7K3Q", Why: "it\x1b[1m\nis", Score: new(0.25), MS: 1500,
				Usage: api.SweepUsage{Calls: 2, Input: 1000, Cached: 950, Output: 20, CostUSD: new(0.012)}})
		}
	}
	s.Trials[0].State = api.SweepFailed
	s.Sum()
	return s
}

// The table of a sweep on a terminal is drawn in its own place, on the lines and columns that there are, and nothing of what it tells acts.
func TestM03TheTableOfASweepIsDrawnInItsPlace(t *testing.T) {
	var out bytes.Buffer
	p := New(&Screen{Writer: new(bytes.Buffer)}, &Screen{Writer: &out, TTY: true, Width: 80})
	p.Color = "never"
	p.UseColors()
	x := NewSweepScreen(p)
	s := aSweep(40)
	x.Tell(s, nil)
	x.Tell(s, &s.Trials[0])
	x.Close()
	parts := strings.Split(out.String(), "\x1b[22A\r\x1b[J") // 24 rows: head, cells, what is left out, the sum
	if len(parts) != 3 || parts[2] != "" {
		t.Fatalf("%d drawings: %.2000q", len(parts), out.String())
	}
	for _, drawn := range parts[:2] {
		lines := strings.Split(strings.TrimSuffix(drawn, "\n"), "\n")
		if len(lines) != 22 || !strings.HasPrefix(lines[20], "… and 21 more") || !strings.HasPrefix(lines[21], "─ 200 of 200 trials · $2.4000 · Ctrl-C stops safely") {
			t.Errorf("%d lines, the last ones %q", len(lines), lines[len(lines)-2:])
		}
		for _, line := range lines {
			if len([]rune(line)) > 79 || strings.ContainsAny(line, "\x1b\a\u202e") {
				t.Errorf("line %q", line)
			}
		}
	}
}

// Without a terminal there is a line for each trial; the answer has the pass rate with its interval.
func TestM03ASweepWithoutATerminal(t *testing.T) {
	var out, told bytes.Buffer
	p := New(&Screen{Writer: &out}, &Screen{Writer: &told})
	x := NewSweepScreen(p)
	s := aSweep(2)
	x.Tell(s, nil)
	for i := range s.Trials {
		x.Tell(s, &s.Trials[i])
	}
	if lines := strings.Split(told.String(), "\n"); len(lines) != 11 || strings.ContainsAny(told.String(), "\x1b\a") || !strings.HasPrefix(lines[0], "  failed  openai/") ||
		!strings.HasSuffix(lines[0], `1/5  run 7K3Q  score 0.25  $0.0120  1.5s  it\u001b[1m …`) {
		t.Errorf("told was %.3000q", told.String())
	}
	if err := p.ShowSweep(s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4/5 38–96 %", "5/5 57–100 %", "95 %", "5000→100", "$0.0600", "10 of 10 trials completed; $0.1200\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\a") {
		t.Errorf("the answer acts: %q", out.String())
	}
}
