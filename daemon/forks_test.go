package daemon_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"wf/api"
	"wf/hub/guard"
	"wf/protocol"
)

// A client that holds a run learns of the forks that came and went, also where as many are left as there were.
func TestATagNamesTheForksOfARun(t *testing.T) {
	dir := t.TempDir()
	laid(t, dir, map[string]string{"one.yaml": "wf: 1\nname: one\nroles: {first: {set: {n: 1}}, q: {ask: Well?}}\nedges:\n  - {from: START, to: first}\n  - {from: first, to: q}\n  - {from: q, to: END}\n"})
	d := serving(t, dir)
	run := begun(t, d, "one", "{}")
	follow := func(run protocol.RunID, until api.Until) {
		t.Helper()
		if err := d.Follow(t.Context(), run, api.Following{Until: until}, func(api.Update) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	follow(run, api.Parked)
	fork := func() protocol.RunID {
		t.Helper()
		made, err := d.Service.Fork(t.Context(), run, api.Fork{Step: "q#1"})
		if err != nil {
			t.Fatal(err)
		}
		return made.ID
	}
	var tags []string
	tag := func(status int) {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(guard.With(t.Context(), guard.Identity{Scopes: guard.AllScopes}), "GET", "/v1/runs/"+string(run), http.NoBody)
		if len(tags) > 0 {
			r.Header.Set("If-None-Match", tags[len(tags)-1])
		}
		d.Handler().ServeHTTP(w, r)
		if w.Code != status {
			t.Fatalf("status %d, want %d", w.Code, status)
		}
		if tags = append(tags, w.Header().Get("ETag")); status == 200 && slices.Contains(tags[:len(tags)-1], tags[len(tags)-1]) {
			t.Errorf("tag %s is that of other forks", tags[len(tags)-1])
		}
	}
	tag(200)
	tag(304)
	one := fork()
	tag(200)
	follow(one, api.Parked)
	if err := d.Service.Cancel(t.Context(), one, "enough"); err != nil {
		t.Fatal(err)
	}
	follow(one, api.Ended)
	tag(304)
	if _, err := d.Service.Delete(t.Context(), one, api.Delete{}); err != nil {
		t.Fatal(err)
	}
	fork()
	tag(200)
	tag(304)
}

// A client that holds a fork learns of the run that it was forked from, which came later.
func TestATagNamesWhatARunWasForkedFrom(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	laid(t, here, map[string]string{"one.yaml": "wf: 1\nname: one\nroles: {first: {set: {n: 1}}, q: {ask: Well?}}\nedges:\n  - {from: START, to: first}\n  - {from: first, to: q}\n  - {from: q, to: END}\n"})
	from, to := serving(t, here), serving(t, there)
	run := begun(t, from, "one", "{}")
	parked := func(run protocol.RunID) {
		t.Helper()
		if err := from.Follow(t.Context(), run, api.Following{Until: api.Parked}, func(api.Update) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	parked(run)
	made, err := from.Service.Fork(t.Context(), run, api.Fork{Step: "q#1"})
	if err != nil {
		t.Fatal(err)
	}
	parked(made.ID)
	bring := func(run protocol.RunID) {
		t.Helper()
		var archive bytes.Buffer
		if err := from.Service.Export(t.Context(), run, api.ExportOptions{}, &archive); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Service.Import(t.Context(), &archive, api.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	tag := func() string {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(guard.With(t.Context(), guard.Identity{Scopes: guard.AllScopes}), "GET", "/v1/runs/"+string(made.ID), http.NoBody)
		to.Handler().ServeHTTP(w, r)
		if w.Code != 200 || w.Header().Get("ETag") == "" {
			t.Fatalf("status %d, tag %q", w.Code, w.Header().Get("ETag"))
		}
		return w.Header().Get("ETag")
	}
	bring(made.ID)
	alone := tag()
	bring(run)
	if tag() == alone {
		t.Error("the tag is that of a run without one")
	}
}
