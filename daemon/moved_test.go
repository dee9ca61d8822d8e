package daemon_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"wf/api"
	"wf/daemon"
	"wf/protocol"
	"wf/store"
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

// The socket of a sub-workflow that waits goes with the drive of its parent: clients took a run with a socket for one that is driven.
func TestTheSocketOfASubWorkflowGoesWithItsParents(t *testing.T) {
	dir := t.TempDir()
	laid(t, dir, map[string]string{
		"child.yaml":  "wf: 1\nname: child\nroles: {q: {ask: Well?}}\n",
		"parent.yaml": "wf: 1\nname: parent\nroles: {sub: {workflow: child.yaml}}\n",
	})
	u, s := opened(t, dir)
	err := daemon.Private(u, s, dir, func(d *daemon.Daemon) error { // which looks for no runs to drive
		run := begun(t, d, "parent", "{}")
		if err := d.Follow(t.Context(), run, api.Following{Until: api.Parked}, func(api.Update) error { return nil }); err != nil {
			return err
		}
		v, err := d.Service.Run(t.Context(), run, api.Window{})
		if err != nil || len(v.Steps) != 1 || v.Steps[0].Child == "" {
			return fmt.Errorf("%+v, %w", v, err)
		}
		haveNoSocket(t, s, run, v.Steps[0].Child)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// haveNoSocket waits until none of the runs has a socket.
func haveNoSocket(t *testing.T, s store.Store, runs ...protocol.RunID) {
	t.Helper()
	patience := time.After(time.Minute)
	for _, of := range runs {
		dir, name, err := daemon.RunSocket(s.Beside(), of)
		if err != nil {
			t.Fatal(err)
		}
		for {
			_, err := os.Lstat(filepath.Join(dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			select {
			case <-patience:
				t.Fatalf("run %s waits, and has a socket: %v", of, err)
			default:
				runtime.Gosched()
			}
		}
	}
}
