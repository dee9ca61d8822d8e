package servicetest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
)

// chosen gives the steps of some states or of a role, part by part, and what it says of the run is of all of it.
func chosen(t *testing.T, suite Suite) {
	s := suite.open(t)
	run := begin(t, s, "roads")
	whole := shown(t, s, run)
	for _, c := range []struct {
		w        api.Window
		want     []string
		matching int
	}{
		{api.Window{States: []string{"waiting"}}, []string{"gate#1"}, 1},
		{api.Window{States: []string{"ok"}}, []string{"first#1"}, 1},
		{api.Window{States: []string{"failed"}}, nil, 0},
		{api.Window{States: []string{"ok", "waiting"}}, []string{"first#1", "gate#1"}, 2},
		{api.Window{States: []string{"ok", "waiting"}, Limit: 1}, []string{"gate#1"}, 2},
		{api.Window{States: []string{"ok", "waiting"}, Before: whole.Steps[1].Began}, []string{"first#1"}, 2},
		{api.Window{Role: "gate"}, []string{"gate#1"}, 1},
		{api.Window{States: []string{"running"}, At: whole.Steps[1].Began}, []string{"gate#1"}, 1},
	} {
		v, err := s.Run(t.Context(), run, c.w)
		if err != nil {
			t.Errorf("%+v: %v", c.w, err)
			continue
		}
		var got []string
		for _, x := range v.Steps {
			got = append(got, x.ID)
		}
		if v.Matching == nil || *v.Matching != c.matching || !slices.Equal(got, c.want) || v.Count() != 2 {
			t.Errorf("%+v: %v of %v steps match, and %v are given of %d; want %v, %d", c.w, v.Matching, v.Count(), got, c.matching, c.want, c.matching)
		}
		if diff := cmp.Diff(whole.Usage, v.Usage); diff != "" && c.w.At == 0 {
			t.Errorf("%+v: the sums (-whole +chosen):\n%s", c.w, diff)
		}
	}
	if whole.Matching != nil || whole.Fans != nil {
		t.Errorf("%v steps match although none were asked for", whole.Matching)
	}
}
