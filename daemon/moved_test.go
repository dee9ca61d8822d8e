package daemon_test

import (
	"testing"

	"wf/api"
	"wf/daemon"
	"wf/protocol"
)

// O-06a: a hub tells a worker whenever a run moves there that is another worker's, which it does while it closes: nothing
// of that is skipped.
func TestO06aARunOfAnotherWorkerCloses(t *testing.T) {
	dir := t.TempDir()
	laid(t, dir, map[string]string{"one.yaml": "wf: 1\nname: one\nroles: {q: {ask: Well?}, tidy: {set: {n: 1}}, note: {set: {n: 2}}}\nalways: [tidy, note]\n"})
	d := serving(t, dir)
	run := begun(t, d, "one", "{}")
	for range 10 {
		daemon.Moved(d, run, "other")
	}
	if err := d.Follow(t.Context(), run, api.Following{Until: api.Ended}, func(api.Update) error { return nil }); err != nil {
		t.Fatal(err)
	}
	v, err := d.Service.Run(t.Context(), run, api.Window{})
	if err != nil {
		t.Fatal(err)
	}
	if v.Status != protocol.Cancelled || len(v.Steps) != 3 || len(v.CleanupFailed) > 0 {
		t.Errorf("%s after %d steps, %v", v.Status, len(v.Steps), v.CleanupFailed)
	}
}
