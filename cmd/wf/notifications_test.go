package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"wf/api"
	"wf/daemon"
	"wf/hub/client"
	"wf/protocol"
)

// What was not delivered is seen and attempted again at wf serve as in the directory of the store. Through a hub, which
// may do less at its workers, addresses are no more than their host, and nothing is attempted again.
func TestNotificationsAreSeenAndRetriedAtServers(t *testing.T) {
	t.Setenv("OPS_KEY", notifySecret)
	dir := t.TempDir()
	write(t, dir, "set.yaml", setYAML)
	var status atomic.Int32
	status.Store(http.StatusGone) // then there is no other attempt
	n := receive(t, dir, func(*http.Request) int { return int(status.Load()) })
	to := n.server.URL + "/services/T0/key"
	write(t, filepath.Join(dir, ".config", "wf"), "config.yaml", fmt.Sprintf("notify:\n  - {name: ops, webhook: %s, secret: OPS_KEY}\n  - {name: log, on: limit, command: echo private}\n", to))
	trustAll(t, dir)
	hub := startProcess(t, dir, "hub", "--listen", "127.0.0.1:0")
	var said api.HubServing
	if err := json.Unmarshal(hub.line, &said); err != nil {
		t.Fatal(err)
	}
	url := said.Listen[0].URL
	s := startServe(t, dir, "--listen", "unix", "--workflows", dir, "--hub", url, "--hub-token-file", said.AgentToken)
	first := s.started(map[string]any{"workflow": "set"})
	second := s.started(map[string]any{"workflow": "set"})
	counts := func(delivered int64, dead int) func() bool {
		return func() bool {
			h := hooksOf(t, dir).Sinks[0]
			return h.Delivered == delivered && h.Dead == dead && h.Waiting == 0
		}
	}
	awaitStore(t, s, counts(0, 2))

	socket := s.said.Listen[0].URL
	list := func(at string, more ...string) string {
		t.Helper()
		out, err := wfIn(dir, append([]string{"hook", "ls", "-o", "json"}, more...)...).CombinedOutput()
		if at != "" {
			out, err = wfIn(dir, append([]string{"--hub", at, "hook", "ls", "-o", "json"}, more...)...).CombinedOutput()
		}
		if err != nil {
			t.Fatalf("%s: %v %s", at, err, out)
		}
		return string(out)
	}
	here := list("")
	if there := list(socket); there != here || !strings.Contains(here, to) || !strings.Contains(here, "echo private") {
		t.Errorf("at the socket of the owner:\n%s\n%s", here, there)
	}
	worker := workerOf(t, said)
	if there := list(url, "--worker", worker); strings.Contains(there, "services") || strings.Contains(there, "private") || !strings.Contains(there, `"`+n.server.URL+`"`) || !strings.Contains(there, "it answered 410 Gone") {
		t.Errorf("through a hub:\n%s", there)
	}

	owner, err := client.New(socket, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	at := client.Service{API: owner}
	listed := func(q api.NotificationQuery) *api.NotificationList {
		t.Helper()
		all, err := at.Notifications(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	// About one run, the same everywhere; a hub finds the worker by the run.
	about := list("", "--run", string(first))
	if !strings.Contains(about, `"wf.notifications/v1"`) || !strings.Contains(about, string(first)) || strings.Contains(about, string(second)) {
		t.Errorf("about run %s:\n%s", first, about)
	}
	if there := list(socket, "--run", string(first)[:6]); there != about {
		t.Errorf("at the socket of the owner:\n%s\n%s", about, there)
	}
	if there := list(url, "--run", string(first)); strings.Contains(there, "services") || !strings.Contains(there, string(first)) || !strings.Contains(there, `"dead"`) {
		t.Errorf("through a hub:\n%s", there)
	}
	for _, at := range [][]string{nil, {"--hub", socket}, {"--hub", url}} {
		for _, x := range []struct{ want, args string }{
			{"  notifications  1 dead  wf hook ls --run " + string(first), "show " + string(first)},
			{"  done  ops  dead  ", "hook ls --run " + string(second)},
		} {
			if out, err := wfIn(dir, append(at, strings.Fields(x.args)...)...).CombinedOutput(); err != nil || !strings.Contains(unplaced(string(out)), x.want) {
				t.Errorf("wf %s at %q: %v, want %q in\n%s", x.args, at, err, x.want, out)
			}
		}
	}
	all := listed(api.NotificationQuery{})
	if len(all.Items) != 2 || all.Items[0].Due < all.Items[1].Due || all.Items[0].Status != api.NotificationDead || all.Items[0].Attempts != 1 || all.Items[0].Next != nil {
		t.Fatalf("%+v", all.Items)
	}
	if of := listed(api.NotificationQuery{Run: first}); len(of.Items) != 1 || of.Items[0].Run != first || of.Items[0].On != protocol.OnDone {
		t.Errorf("of one run: %+v", of.Items)
	}
	if part := listed(api.NotificationQuery{Part: api.Part{Limit: 1}}); len(part.Items) != 1 || part.Items[0] != all.Items[0] || part.Next == "" {
		t.Errorf("a part: %+v", part)
	} else if rest := listed(api.NotificationQuery{Part: api.Part{After: part.Next}}); len(rest.Items) != 1 || rest.Items[0] != all.Items[1] || rest.Next != "" {
		t.Errorf("what is behind it: %+v", rest)
	}

	if out, err := wfIn(dir, "--hub", url, "hook", "retry", "--all", "--worker", worker).CombinedOutput(); err == nil || !strings.Contains(string(out), `no scope "admin"`) {
		t.Errorf("retried by anyone: %v %s", err, out)
	}
	if out, err := wfIn(dir, "--hub", socket, "hook", "retry", "msg_none").CombinedOutput(); err == nil || !strings.Contains(string(out), "no delivery msg_none waits or is dead") {
		t.Errorf("retried what is not there: %v %s", err, out)
	}
	status.Store(http.StatusOK)
	var id string
	for _, x := range all.Items {
		if x.Run == second {
			id = x.ID
		}
	}
	if out, err := wfIn(dir, "--hub", socket, "hook", "retry", id[:20]).CombinedOutput(); err != nil || string(out) != "1 notification will be attempted again\n" {
		t.Errorf("%v %s", err, out)
	}
	if m := n.next(); m.Run != second {
		t.Errorf("%+v comes, of run %s", m, second)
	}
	awaitStore(t, s, counts(1, 1))
	if of := listed(api.NotificationQuery{Run: second}); len(of.Items) != 1 || of.Items[0].Status != api.NotificationDelivered || of.Items[0].Delivered == nil {
		t.Errorf("what was delivered: %+v", of.Items)
	}
	if there := list(socket); strings.Contains(there, id) {
		t.Errorf("what was delivered is listed as if it was not: %s", there)
	}
}

func hooksOf(t *testing.T, dir string) (all api.Hooks) {
	t.Helper()
	out, err := wfIn(dir, "hook", "ls", "-o", "json").Output()
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return all
}

// ofHub is a client of a hub with the token of its owner.
func ofHub(t *testing.T, said api.HubServing) *client.API {
	t.Helper()
	token, err := daemon.ReadToken(said.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	hub, err := client.New(said.Listen[0].URL, client.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	return hub
}

// workerOf is the id of the only worker of a hub, once it is connected.
func workerOf(t *testing.T, said api.HubServing) string {
	t.Helper()
	there := ofHub(t, said)
	for {
		raw, err := there.Agents(t.Context())
		var list struct {
			Items []struct {
				ID        string
				Connected bool
			}
		}
		if err == nil {
			err = json.Unmarshal(raw, &list)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 1 && list.Items[0].Connected {
			return list.Items[0].ID
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// awaitStore waits until the store of a daemon is as it should be.
func awaitStore(t *testing.T, s *served, is func() bool) {
	t.Helper()
	for {
		since, err := s.store.Changes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if is() {
			return
		}
		if _, err := s.store.AwaitChange(t.Context(), since); err != nil {
			t.Fatal(err)
		}
	}
}

// Runs that were deleted are listed with who deleted them and why, here, at wf serve and through a hub.
func TestDeletionsAreListedEverywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "set.yaml", setYAML)
	hub := startProcess(t, dir, "hub", "--listen", "127.0.0.1:0")
	var said api.HubServing
	if err := json.Unmarshal(hub.line, &said); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, dir, "--listen", "unix", "--workflows", dir, "--hub", said.Listen[0].URL, "--hub-token-file", said.AgentToken)
	var want []string
	for i := range 3 {
		run := s.started(map[string]any{"workflow": "set"})
		s.awaitStatus(run, protocol.Done)
		if out, err := wfIn(dir, "rm", string(run), "--yes", "--why", fmt.Sprint("reason ", i)).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		want = append([]string{string(run) + fmt.Sprintf(" reason %d", i)}, want...)
	}
	here, err := wfIn(dir, "ls", "--deleted", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range [][]string{nil, {"--hub", s.said.Listen[0].URL}, {"--hub", said.Listen[0].URL, "--worker", workerOf(t, said)}} {
		for limit, shown := range map[string]int{"0": 3, "3": 3, "2": 2} {
			out, err := wfIn(dir, append([]string{"ls", "--deleted", "-o", "json", "-n", limit}, at...)...).CombinedOutput()
			var list api.Deletions
			if err == nil {
				err = json.Unmarshal(out, &list)
			}
			if err != nil || len(list.Items) != shown || limit == "0" && string(out) != string(here) {
				t.Errorf("%q, %s: %v %s", at, limit, err, out)
				continue
			}
			for i, x := range list.Items {
				if string(x.Run)+" "+x.Why != want[i] || x.By == "" || x.At == "" || x.Seq < 1 {
					t.Errorf("%q, %s: %+v, want %s", at, limit, x, want[i])
				}
			}
		}
	}
	if out, err := wfIn(dir, "ls", "--deleted").CombinedOutput(); err != nil || strings.Count(string(out), "reason") != 3 || !strings.Contains(string(out), "BY") {
		t.Errorf("%v %s", err, out)
	}
	if out, err := wfIn(dir, "ls", "--deleted", "--tag", "x").CombinedOutput(); err == nil || !strings.Contains(string(out), "leave the other filters out") {
		t.Errorf("%v %s", err, out)
	}
}
