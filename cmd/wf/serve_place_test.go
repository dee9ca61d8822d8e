package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"wf/api"
	"wf/cas"
	"wf/daemon"
	"wf/engine"
	"wf/hub/schedule"
	"wf/protocol"
)

// Where a daemon listens: the socket of one that lives is refused, by the name of its process;
// that of one that was killed is taken over; a port in use is named.
func TestWhereADaemonCanListen(t *testing.T) {
	t.Parallel()
	dir := talkDir(t)
	s := startServe(t, dir, "--listen", "unix", "--listen", "127.0.0.1:0")
	port := strings.TrimPrefix(s.said.Listen[1].URL, "http://")
	for name, args := range map[string][]string{
		"process " + strconv.Itoa(s.said.PID): {"serve"},
		port:                                  {"serve", "--listen", port},
	} {
		out, err := wfIn(dir, args...).CombinedOutput()
		if status := exitOf(t, err); status != 5 || !strings.Contains(string(out), name) {
			t.Errorf("wf %v: exit %d\n%s", args, status, out)
		}
	}
	if status := s.call("GET", "/healthz", nil, nil); status != http.StatusOK {
		t.Errorf("the daemon that lives was disturbed: %d", status)
	}
	if out, err := wfIn(dir, "doctor").CombinedOutput(); err != nil || !strings.Contains(string(out), "listens on "+strings.TrimPrefix(s.said.Listen[0].URL, "unix:")) {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	s.kill()
	s = startServe(t, dir, "--listen", "unix")
	if status := s.call("GET", "/v1/info", nil, nil); status != http.StatusOK {
		t.Errorf("in the place of a killed daemon: %d", status)
	}
	if status := s.stop(); status != 143 {
		t.Errorf("exit %d", status)
	}
	out, err := wfIn(dir, "serve", "--login").CombinedOutput()
	if status := exitOf(t, err); status != 2 || !strings.Contains(string(out), "no wf serve answers") {
		t.Errorf("--login without a daemon: exit %d\n%s", status, out)
	}
}

// Over TCP a browser logs in with the code of the address, and a program with the token.
func TestTheTokenAndTheCodeOfADaemon(t *testing.T) {
	t.Parallel()
	s := serveTalk(t, "--listen", "127.0.0.1:0")
	url, open := s.said.Listen[1].URL, s.said.Listen[1].Open
	ask := func(method, path, body string, headers ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Set(name, value)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			t.Fatal(err)
		}
		answer.Body = io.NopCloser(bytes.NewReader(said))
		return answer
	}
	if status := ask("GET", "/v1/runs", "").StatusCode; status != 401 {
		t.Errorf("without a token: %d", status)
	}
	token, err := os.ReadFile(s.said.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(s.said.TokenFile, filepath.Join(s.dir, ".wf")+"/") {
		t.Errorf("the token lies in the store: %s", s.said.TokenFile)
	}
	if status := ask("GET", "/v1/runs", "", "Authorization: Bearer "+strings.TrimSpace(string(token))).StatusCode; status != 200 {
		t.Errorf("with the token: %d", status)
	}
	page := ask("GET", "/", "")
	if page.StatusCode != 200 || !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") || !strings.Contains(page.Header.Get("Content-Security-Policy"), "default-src 'self'") {
		t.Errorf("the page: %d %v", page.StatusCode, page.Header)
	}
	_, code, ok := strings.Cut(open, "/#code=")
	if !ok {
		t.Fatalf("no code in %s", open)
	}
	login := ask("POST", "/v1/login", `{"code":"`+code+`"}`, "Origin: "+url, "Content-Type: application/json")
	var session struct{ Token string }
	if err := json.NewDecoder(login.Body).Decode(&session); err != nil || login.StatusCode != 200 || len(login.Cookies()) != 0 {
		t.Fatalf("login: %d, %v, %v", login.StatusCode, err, login.Cookies())
	}
	if status := ask("GET", "/v1/runs", "", "Authorization: Bearer "+session.Token, "Sec-Fetch-Site: same-origin").StatusCode; status != 200 {
		t.Errorf("with the session: %d", status)
	}
	out, err := wfIn(s.dir, "serve", "--login").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), url+"/#code=") {
		t.Errorf("--login: %v\n%s", err, out)
	}
	// Who did what is recorded: the owner, or whom a token was given to.
	const dashboard = "ZGFzaGJvYXJkLWRhc2hib2FyZC1kYXNoYm9hcmQtZGE"
	if err := os.WriteFile(s.said.TokenFile, append(token, dashboard+" read run  # dashboard\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	for bearer, who := range map[string]string{strings.TrimSpace(string(token)): "ada", dashboard: "dashboard"} {
		request := "by-" + who
		ask("POST", "/v1/runs", `{"workflow":"talk","request_id":"`+request+`"}`, "Authorization: Bearer "+bearer, "Content-Type: application/json")
		run := s.awaitStatus(engine.RequestRun(request), protocol.Waiting)
		if run.Info.CreatedBy != who {
			t.Errorf("%s is recorded as %q", who, run.Info.CreatedBy)
		}
		if status := ask("POST", "/v1/runs/"+string(run.ID)+"/answer", `{"choice":"stop"}`, "Authorization: Bearer "+bearer, "Content-Type: application/json").StatusCode; status != 200 {
			t.Errorf("answer: %d", status)
		}
		s.awaitStatus(run.ID, protocol.Done)
		if events := strings.Join(s.events(run.ID), "\n"); !strings.Contains(events, `"type":"answered","step":"gate#1","data":{"by":"`+who+`"`) {
			t.Errorf("no answer by %s:\n%s", who, events)
		}
	}
}

// Two daemons of one store: both show the same, a request id starts one run, a run is driven by
// one of them, and an answer through the other reaches it.
func TestTwoDaemonsOnOneStore(t *testing.T) {
	t.Parallel()
	a := serveTalk(t)
	b := startServe(t, a.dir, "--listen", "unix:"+filepath.Join(a.dir, "b", "b.sock"), "--workflows", a.dir)
	var ids [8]protocol.RunID
	var both sync.WaitGroup
	for i, s := range []*served{a, b, a, b, a, b, a, b} {
		both.Go(func() {
			var x struct{ ID protocol.RunID }
			s.call("POST", "/v1/runs", map[string]any{"workflow": "talk", "request_id": "both"}, &x)
			ids[i] = x.ID
		})
	}
	both.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Fatalf("runs %v", ids)
		}
	}
	a.awaitStatus(ids[0], protocol.Waiting)
	for i, s := range []*served{b, a} {
		v := s.awaitStatus(ids[0], protocol.Waiting)
		if status := s.call("POST", "/v1/runs/"+string(ids[0])+"/answer", map[string]any{"step": v.Waiting[0].Step, "choice": "more"}, nil); status != http.StatusOK {
			t.Errorf("answer %d: %d", i, status)
		}
		s.await(ids[0], "one visit further", func(v *api.Run) bool { return v.Status == protocol.Waiting && len(v.Steps) == 4+2*i })
	}
	if x, y := strings.Join(a.events(ids[0]), "\n"), strings.Join(b.events(ids[0]), "\n"); x != y {
		t.Errorf("they show two histories:\n%s\n\n%s", x, y)
	}
	for _, st := range a.view(ids[0]).Steps {
		if len(st.Attempts) != 1 {
			t.Errorf("%s was tried %d times", st.ID, len(st.Attempts))
		}
	}
}

// A firing is started once, however often it is fired, and by however many daemons.
func TestAScheduledFiringStartsOneRun(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "tick.yaml", "wf: 1\nname: tick\non: {schedule: {cron: \"@daily\", timezone: Europe/Berlin}}\ndefaults: {timeout: 1m}\nroles: {a: {run: \"true\"}}\n")
	write(t, dir, "other.yaml", "kind: something else\n")
	write(t, dir, "broken.yaml", "wf: 1\nroles: {}\n")
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state")) // as wfIn
	trustAll(t, dir)
	ctx := context.Background()
	s, err := cas.Open(ctx, filepath.Join(dir, ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	due := time.Date(2026, 1, 5, 23, 0, 0, 0, time.UTC)
	for range 2 {
		d, err := quietDaemon(s, dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		list, err := d.Service.Workflows(ctx)
		if err != nil || len(list) != 2 || list[0].Problem == "" || list[1].Name != "tick" || *list[1].Schedule != "@daily" {
			t.Fatalf("%+v %v", list, err)
		}
		d.Supervisor.Start()
		jobs, err := d.Jobs(ctx)
		if err != nil || len(jobs) != 1 || jobs[0].Schedule != (protocol.Schedule{Cron: "@daily", Timezone: "Europe/Berlin"}) {
			t.Fatalf("%+v %v", jobs, err)
		}
		for range 2 {
			if _, _, err := d.Fire(ctx, schedule.Firing{Job: jobs[0], Due: due, RequestID: "schedule/tick/x"}); err != nil {
				t.Error(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	heads, err := s.Heads(ctx, protocol.RunHead(""))
	if err != nil || len(heads) != 1 {
		t.Errorf("%d runs, %v", len(heads), err)
	}
}

// A timer that runs out while no daemon runs is seen by the next one.
func TestARunWhoseTimerRanOutMeanwhileGoesOn(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "nap.yaml", "wf: 1\nname: nap\ndefaults: {timeout: 1m}\nroles: {nap: {wait: 2h}}\n")
	t.Setenv("XDG_STATE_HOME", dir)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := cas.Open(ctx, filepath.Join(dir, ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	serveUntil := func(later time.Duration, status protocol.RunStatus, begin func(*daemon.Daemon) protocol.RunID) protocol.RunID {
		t.Helper()
		d, err := quietDaemon(s, dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		d.Service.Engine.Now = func() time.Time { return time.Now().Add(later) }
		d.Start()
		run := begin(d)
		for {
			since, err := s.Changes(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Tip(ctx, run); err != nil {
				t.Fatal(err)
			}
			st, err := d.Service.Engine.State(ctx, run)
			if err != nil {
				t.Fatal(err)
			}
			if st.Status() == status {
				break
			}
			if _, err := s.AwaitChange(ctx, since); err != nil {
				t.Fatalf("%s, not %s: %v", st.Status(), status, err)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		return run
	}
	run := serveUntil(0, protocol.Waiting, func(d *daemon.Daemon) protocol.RunID {
		id, _, err := d.Service.Start(ctx, api.Start{Workflow: "nap"})
		if err != nil {
			t.Fatal(err)
		}
		return id
	})
	serveUntil(time.Hour, protocol.Waiting, func(*daemon.Daemon) protocol.RunID { return run })
	serveUntil(3*time.Hour, protocol.Done, func(*daemon.Daemon) protocol.RunID { return run })
}

// The socket of the replay protocol stands behind the guard like everything else.
func TestTheReplaySocketIsGuarded(t *testing.T) {
	t.Parallel()
	s := serveTalk(t, "--listen", "127.0.0.1:0")
	run := s.started(map[string]any{"workflow": "talk"})
	s.awaitStatus(run, protocol.Waiting)
	token, err := os.ReadFile(s.said.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	url, secret := s.said.Listen[1].URL, strings.TrimSpace(string(token))
	dial := func(header http.Header, protocols ...string) (*websocket.Conn, int) {
		t.Helper()
		c, answer, err := websocket.Dial(t.Context(), url+"/v1/replay", &websocket.DialOptions{HTTPHeader: header, Subprotocols: protocols})
		if err == nil {
			return c, answer.StatusCode
		}
		if answer == nil {
			t.Fatal(err)
		}
		return nil, answer.StatusCode
	}
	for name, test := range map[string]struct {
		header    http.Header
		protocols []string
		status    int
	}{
		"no token":                   {nil, []string{"wf.replay.v1"}, 401},
		"a wrong token":              {http.Header{"Authorization": {"Bearer x"}}, nil, 401},
		"a token, a foreign Origin":  {http.Header{"Authorization": {"Bearer " + secret}, "Origin": {"https://evil.example"}}, nil, 403},
		"a token as a subprotocol":   {nil, []string{"wf.replay.v1", "wf.token." + secret}, 101},
		"a token and our own Origin": {http.Header{"Authorization": {"Bearer " + secret}, "Origin": {url}}, []string{"wf.replay.v1"}, 101},
	} {
		c, status := dial(test.header, test.protocols...)
		if status != test.status {
			t.Errorf("%s: %d, want %d", name, status, test.status)
		}
		if c == nil {
			continue
		}
		if c.Subprotocol() != "wf.replay.v1" {
			t.Errorf("%s: the subprotocol is %q", name, c.Subprotocol())
		}
		if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"type":"replay_request","sessionId":"`+string(run)+`","fromSeq":0}`)); err != nil {
			t.Fatal(err)
		}
		_, first, err := c.Read(t.Context())
		if err != nil || !strings.Contains(string(first), `"run_started"`) {
			t.Errorf("%s: %v %s", name, err, first)
		}
		if err := c.CloseNow(); err != nil {
			t.Error(err)
		}
	}
}
