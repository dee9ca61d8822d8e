package castest

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/protocol"
)

// family are runs that share events: a fork, a fork of that, one of the same event, and a run of as many events that shares none.
var family = []protocol.RunID{"origin", "fork", "fork-of-fork", "twin", "stranger"}

func familyIn(t *testing.T, s cas.Keeper) {
	t.Helper()
	Sample(t, s, "origin", 30, nil)
	Append(t, Forked(t, s, "origin", "fork", 40), 30)
	Append(t, Forked(t, s, "fork", "fork-of-fork", 50), 3)
	Append(t, Forked(t, s, "origin", "twin", 40), 1)
	Sample(t, s, "stranger", 30, nil)
}

// Bases are what forks of a store share with which runs, from either end.
func Bases(t *testing.T, s cas.Keeper, runs ...protocol.RunID) map[protocol.RunID]cas.Kinship {
	t.Helper()
	out := map[protocol.RunID]cas.Kinship{}
	from := map[protocol.RunID]cas.Kinship{}
	for _, run := range runs {
		base, shared, err := s.Base(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if base != "" {
			out[run] = cas.Kinship{Fork: run, Base: base, Shared: shared}
		}
		for _, f := range must(s.(interface {
			Forks(context.Context, protocol.RunID) ([]cas.Sharer, error)
		}).Forks(t.Context(), run))(t) {
			from[f.Run] = cas.Kinship{Fork: f.Run, Base: run, Shared: f.Seq}
		}
	}
	if d := cmp.Diff(out, from); d != "" {
		t.Errorf("%s: the bases of forks, and the forks of runs, differ:\n%s", s.Dir(), d)
	}
	return out
}

// archiveOf is an archive of runs.
func archiveOf(t *testing.T, s cas.Keeper, runs ...protocol.RunID) []byte {
	t.Helper()
	var out bytes.Buffer
	must(cas.Export(t.Context(), &out, s, cas.ExportOptions{}, runs[0], runs[1:]...))(t)
	return out.Bytes()
}

func kinInAnyOrder(t *testing.T, from, to Place) {
	a := from.Open(t)
	familyIn(t, a)
	want := Bases(t, a, family...)
	if len(want) != 3 || want["fork-of-fork"] != (cas.Kinship{Fork: "fork-of-fork", Base: "fork", Shared: 50}) {
		t.Fatalf("%v", want)
	}
	bring := func(s cas.Keeper, as protocol.RunID, runs ...protocol.RunID) {
		t.Helper()
		must(cas.Import(t.Context(), bytes.NewReader(archiveOf(t, a, runs...)), s, cas.ImportOptions{Run: as}))(t)
	}
	events := must(readAll(t.Context(), a, "fork-of-fork"))(t)
	whole := func(s cas.Keeper) {
		t.Helper()
		if d := cmp.Diff(want, Bases(t, s, family...)); d != "" {
			t.Errorf("what forks share (-want +have):\n%s", d)
		}
		if d := cmp.Diff(events, must(readAll(t.Context(), s, "fork-of-fork"))(t)); d != "" {
			t.Errorf("it is another run:\n%s", d)
		}
	}
	for _, order := range [][]protocol.RunID{
		{"stranger", "origin", "fork", "fork-of-fork", "twin"},
		{"fork-of-fork", "twin", "fork", "stranger", "origin"},
		{"fork", "stranger", "fork-of-fork", "origin", "twin"},
	} {
		b := to.Open(t)
		for _, run := range order {
			bring(b, "", run)
		}
		whole(b)
		to.clean(t, b)
		c := from.Open(t)
		copied(t, b, c, cas.CopyOptions{})
		whole(c)
		from.clean(t, c)
	}
	together := to.Open(t)
	bring(together, "", "fork-of-fork", "stranger", "twin", "fork", "origin")
	whole(together)
	to.clean(t, together)
	Buried(t, together, "origin") // the forks have its events
	whole(together)
	Buried(t, together, "fork-of-fork")
	delete(want, "fork-of-fork")
	if d := cmp.Diff(want, Bases(t, together, family...)); d != "" {
		t.Errorf("once a fork was deleted (-want +have):\n%s", d)
	}

	// Under another name, and with a beginning that is not long enough yet.
	d, e := from.Open(t), to.Open(t)
	j := Sample(t, d, "origin", 2, nil)
	short := archiveOf(t, d, "origin")
	Append(t, j, 30)
	Append(t, Forked(t, d, "origin", "fork", 20), 1)
	for _, raw := range [][]byte{archiveOf(t, d, "fork"), short} {
		must(cas.Import(t.Context(), bytes.NewReader(raw), e, cas.ImportOptions{}))(t)
	}
	if have := Bases(t, e, "origin", "fork"); len(have) > 0 {
		t.Errorf("a run that has not the event yet: %v", have)
	}
	must(cas.Import(t.Context(), bytes.NewReader(archiveOf(t, d, "origin")), e, cas.ImportOptions{}))(t)
	want = map[protocol.RunID]cas.Kinship{"fork": {Fork: "fork", Base: "origin", Shared: 20}}
	if d := cmp.Diff(want, Bases(t, e, "origin", "fork")); d != "" {
		t.Errorf("once it has (-want +have):\n%s", d)
	}
	f := to.Open(t)
	must(cas.Import(t.Context(), bytes.NewReader(archiveOf(t, d, "origin")), f, cas.ImportOptions{Run: "renamed"}))(t)
	must(cas.Import(t.Context(), bytes.NewReader(archiveOf(t, d, "fork")), f, cas.ImportOptions{}))(t)
	if base, shared, err := f.Base(t.Context(), "fork"); base != "renamed" || shared != 20 || err != nil {
		t.Errorf("under another name it is %s at %d, %v", base, shared, err)
	}
	to.clean(t, e)
	to.clean(t, f)
}
