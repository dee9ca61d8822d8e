package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"wf/api"
)

// F211: of steps that are the same a comparison tells how many they are, and all of them where they are wanted.
func TestF211StepsThatAreTheSameAreOneLine(t *testing.T) {
	d := &api.Diff{Left: "L", Right: "R"}
	for i := range 1008 {
		d.Steps = append(d.Steps, api.StepDiff{ID: fmt.Sprintf("test#1[%d]", i), How: "equal"})
	}
	d.Steps = append(d.Steps, api.StepDiff{ID: "sum#1", How: "changed", Changed: []string{"edge prompt"}}, api.StepDiff{ID: "end#1", How: "equal"})
	for all, want := range map[bool]int{false: 3, true: 1010} {
		var out bytes.Buffer
		p := New(&Screen{Writer: &out}, &Screen{Writer: &out})
		p.All = all
		if err := p.ShowDiff(d); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n != want || !all && !strings.Contains(out.String(), "test#1[0] … test#1[1007]") {
			t.Errorf("all %v: %d lines, want %d:\n%.300s", all, n, want, out.String())
		}
	}
}
