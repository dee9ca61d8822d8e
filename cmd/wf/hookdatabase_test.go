package main

import (
	"encoding/json"
	"testing"

	"wf/engine"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// While the database is away events are taken all the same, by a worker that is killed then; the next one on that machine begins
// their runs when the database is back, once each. So with a database as with a directory.
func TestEventsWaitForADatabase(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for a lease")
	}
	server := pgtest.Own(t)
	dir := t.TempDir()
	write(t, dir, "push.yaml", onPush)
	dsn, err := server.Database(t.Context())
	d := newShared(t, dir, dsn, err)
	d.wf(dir, "trust", "--yes", "push.yaml")
	serve := func() (*process, *served) {
		cmd := wfIn(dir, "serve", "--store", dsn, "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0", "-o", "json")
		cmd.Env = append(cmd.Env, "HOOK_KEY="+hookKey, "HOOK_KEY_OLD="+hookKey)
		p := startCommand(t, cmd)
		s := &served{t: t, dir: dir}
		if err := json.Unmarshal(p.line, &s.said); err != nil {
			t.Fatal(err)
		}
		return p, s
	}
	p, s := serve()
	client := clientOf(4)
	var runs []protocol.RunID
	send := func(s *served, from, to, status int) {
		t.Helper()
		for i := from; i < to; i++ {
			m := mailed["github"](i)
			a, err := s.mail(client, m)
			if err != nil || a.status != status || a.ID != engine.LongRequestRun(m.request) {
				t.Fatalf("event %d: %+v, %v", i, a, err)
			}
			if status == 202 {
				runs = append(runs, a.ID)
			}
		}
	}
	send(s, 0, 3, 202)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	send(s, 3, 6, 202)
	send(s, 3, 6, 200)
	p.kill()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	_, s = serve()
	for _, run := range runs {
		d.until("the run is done", func() bool {
			out, err := d.try(dir, "show", string(run), "-o", "json")
			var v struct{ Status protocol.RunStatus }
			return err == nil && json.Unmarshal([]byte(out), &v) == nil && v.Status == protocol.Done
		})
	}
	send(s, 0, 6, 200)
	d.wf(dir, "verify", "--all")
}
