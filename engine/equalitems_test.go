package engine_test

import (
	"fmt"
	"testing"

	"wf/api"
	"wf/protocol"
)

// fanTwice enters a fan-out with one list of items, and then with another.
func fanTwice(first, second string) string {
	return fmt.Sprintf(`
wf: 1
name: twice
roles:
  list: {set: {items: "${{ steps.list == nil ? %s : %s }}", n: "${{ (steps.list?.visit ?? 0) + 1 }}"}}
  w: {set: {x: "${{ item }}"}}
  end: {set: {n: "${{ steps.list.output.n }}"}}
edges:
  - {from: START, to: list}
  - {from: list, to: w, for_each: output.items}
  - {from: w, to: end}
  - {from: end, to: list, when: output.n < 2, limit: 5}
  - {from: end, to: END}
`, first, second)
}

// F-71: of equal items the n-th goes on with the n-th.
func TestF71EqualItemsGoOnInTheirOrder(t *testing.T) {
	for _, c := range []struct {
		first, second string
		want          []string // of the second batch: the step each item resumes, "" for none
	}{
		{"[7, 7]", "[7]", []string{"w#1[0]"}},
		{"[7]", "[7, 7]", []string{"w#1[0]", ""}},
		{"[7, 7]", "[7, 7]", []string{"w#1[0]", "w#1[1]"}},
		{"[7, 8, 7]", "[8, 7, 9, 7]", []string{"w#1[1]", "w#1[0]", "", "w#1[2]"}},
	} {
		b := newBench(t)
		id, v := b.run(fanTwice(c.first, c.second), nil)
		if v.Status != protocol.Done {
			t.Fatalf("%s: %s", v.Status, v.Reason)
		}
		names := map[string]string{}
		for _, s := range v.Steps {
			if s.CID != nil {
				// Equal items have records of their own: they differ in the index.
				names[*s.CID] = s.ID
			}
		}
		for i, want := range c.want {
			step := stepOf(t, v, fmt.Sprintf("w#2[%d]", i))
			got := ""
			if step.Resumes != nil {
				got = names[*step.Resumes]
			}
			if got != want {
				t.Errorf("%s, then %s: item %d resumes %q, want %q", c.first, c.second, i, got, want)
			}
		}
		if r, err := b.e.Check(t.Context(), id, nil); err != nil || !r.OK() {
			t.Errorf("check: %+v, %v", r, err)
		}
		b.agrees(id)
	}
}

func stepOf(t *testing.T, v *api.Run, id string) *api.Step {
	t.Helper()
	for _, s := range v.Steps {
		if s.ID == id {
			return s
		}
	}
	t.Fatalf("no step %s in %v", id, steps(v))
	return nil
}
