package rules_test

import (
	"fmt"
	"strings"
	"testing"

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
		w := newWorld(t, fanTwice(c.first, c.second), nil)
		if v := w.play(); v.Status != done {
			t.Fatalf("%s: %s", v.Status, v.Detail)
		}
		names := map[protocol.Link]string{}
		for i := range strings.Count(c.first, ",") + 1 {
			// Equal items have records of their own: they differ in the index.
			step := fmt.Sprintf("w#1[%d]", i)
			l, _ := w.recordOf(step)
			names[l] = step
		}
		for i, want := range c.want {
			_, r := w.recordOf(fmt.Sprintf("w#2[%d]", i))
			if got := names[r.Resumes]; got != want {
				t.Errorf("%s, then %s: item %d resumes %q, want %q", c.first, c.second, i, got, want)
			}
		}
	}
}
