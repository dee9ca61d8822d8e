package pgstore

import (
	"fmt"
	"testing"

	"wf/cas"
)

// Groups are filled in order, and no batch passes another one of its heads.
func TestGroups(t *testing.T) {
	moving := func(id, size int, names ...string) *request {
		r := &request{size: size, fence: cas.Fence{Token: [16]byte{byte(id >> 8), byte(id)}}} // by which it is known below
		for _, n := range names {
			kind := int32(moves)
			switch n[0] {
			case '+':
				kind, n = shares, n[1:]
			case '!':
				kind, n = guards, n[1:]
			}
			r.rows = append(r.rows, row{kind: kind, name: n})
		}
		return r
	}
	many := func(n int) (out []*request) {
		for i := range n {
			out = append(out, moving(i, 0, fmt.Sprint(i)))
		}
		return out
	}
	for _, c := range []struct {
		name    string
		waiting []*request
		want    [][]int // ids of the groups; of long ones the length alone, negative
	}{
		{"one head, in order", []*request{moving(0, 0, "a"), moving(1, 0, "b"), moving(2, 0, "a"), moving(3, 0, "a", "c"), moving(4, 0, "c")}, [][]int{{0, 1}, {2}, {3}, {4}}},
		{"two forks of one run", []*request{moving(0, 0, "f", "+r"), moving(1, 0, "g", "+r")}, [][]int{{0, 1}}},
		{"a fork behind the end of its base", []*request{moving(0, 0, "r"), moving(1, 0, "f", "+r"), moving(2, 0, "f")}, [][]int{{0}, {1}, {2}}},
		{"the end of a run behind its fork", []*request{moving(0, 0, "f", "+r"), moving(1, 0, "r")}, [][]int{{0}, {1}}},
		{"a claim and its root", []*request{moving(0, 0, "r", "!r"), moving(1, 0, "c", "!r")}, [][]int{{0}, {1}}},
		{"children of one root", []*request{moving(0, 0, "c", "!r"), moving(1, 0, "d", "!r")}, [][]int{{0, 1}}},
		{"blocks alone", []*request{moving(0, 0), moving(1, 0)}, [][]int{{0, 1}}},
		{"just the size of a group", []*request{moving(0, groupSize-1, "a"), moving(1, 1, "b"), moving(2, 1, "c")}, [][]int{{0, 1}, {2}}},
		{"beyond it at once", []*request{moving(0, groupSize+1, "a"), moving(1, 0, "b")}, [][]int{{0}, {1}}},
		{"as many as a group holds", many(maxGroup), [][]int{{-maxGroup}}},
		{"one more", many(maxGroup + 1), [][]int{{-maxGroup}, {maxGroup}}},
	} {
		q := queue{waiting: c.waiting, running: true}
		var got [][]int
		for {
			group := q.take()
			if group == nil {
				break
			}
			var ids []int
			for _, r := range group {
				ids = append(ids, int(r.fence.Token[0])<<8|int(r.fence.Token[1]))
			}
			if len(ids) > 10 {
				ids = []int{-len(ids)}
			}
			got = append(got, ids)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || q.running {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
