package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

func TestK12AJobKeepsItsFieldsAndStartsOnce(t *testing.T) {
	t.Parallel()
	s := serveTalk(t)
	job := map[string]any{"workflow": "talk", "inputs": map[string]any{"topic": "snow"}, "title": "A title", "description": "What for",
		"type": "general", "scope": "tools", "tags": []string{"a", "b"}, "created_by": "claude", "target_user": "bob", "request_id": "ef2903d1"}
	run := s.started(job)
	var again struct {
		ID    protocol.RunID
		Fresh bool
	}
	for range 3 {
		if status := s.call("POST", "/v1/runs", job, &again); status != http.StatusOK || again.ID != run || again.Fresh {
			t.Errorf("the same request id: %d %+v, want run %s", status, again, run)
		}
	}
	v := s.awaitStatus(run, protocol.Waiting)
	got, err := json.Marshal(v.Info)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{"title": `"A title"`, "description": `"What for"`, "type": `"general"`, "scope": `"tools"`,
		"tags": `["a","b"]`, "claimed_by": `"claude"`, "target_user": `"bob"`, "request_id": `"ef2903d1"`, "inputs": `{"topic":"snow"}`} {
		if !strings.Contains(string(got), `"`+field+`":`+want) {
			t.Errorf("%s is not %s in %s", field, want, got)
		}
	}
	if v.Info.CreatedBy == "claude" {
		t.Error("the run is of the one whom the request names")
	}
	var list struct{ Items []api.Row }
	if s.call("GET", "/v1/runs?all=true", nil, &list); len(list.Items) != 1 {
		t.Errorf("%d runs", len(list.Items))
	}
	if w := v.Waiting; len(w) != 1 || w[0].Step != "gate#1" || len(w[0].Choices) != 2 || w[0].Choices[0] != (protocol.Choice{Label: "Once more", Value: "more", Primary: true}) {
		t.Errorf("waiting %+v", w)
	}
	var problem struct{ Code, Message string }
	if status := s.call("POST", "/v1/runs/"+string(run)+"/answer", map[string]any{"choice": "maybe"}, &problem); status != http.StatusUnprocessableEntity || !strings.Contains(problem.Message, "more, stop") {
		t.Errorf("a choice that is not offered: %d %+v", status, problem)
	}
	if status := s.call("POST", "/v1/runs/"+string(run)+"/answer", map[string]any{"choice": "more"}, nil); status != http.StatusOK {
		t.Errorf("answer: %d", status)
	}
	v = s.await(run, "at gate#2", func(v *api.Run) bool { return len(v.Waiting) == 1 && v.Waiting[0].Step == "gate#2" })
	if x := v.Timing; x.TTFEMS+x.ThinkingMS+x.ToolsMS != x.TotalMS || x.TotalMS <= 0 || x.TTFEPct+x.ThinkingPct+x.ToolsPct != 100 {
		t.Errorf("timing %+v", x)
	}
	if status := s.call("POST", "/v1/runs/"+string(run)+"/answer", map[string]any{"step": "gate#2", "choice": "Enough"}, nil); status != http.StatusOK {
		t.Errorf("answer by label: %d", status)
	}
	s.awaitStatus(run, protocol.Done)
	if status := s.call("POST", "/v1/runs/"+string(run)+"/answer", map[string]any{"choice": "more"}, nil); status != http.StatusConflict {
		t.Errorf("answer to a run that is done: %d", status)
	}
}

func TestB10MessagesOfOtherSourcesWaitForTheNextVisit(t *testing.T) {
	t.Parallel()
	s := serveTalk(t)
	run := s.started(map[string]any{"workflow": "talk"})
	s.awaitStatus(run, protocol.Waiting)
	for _, m := range []struct{ source, text string }{{"mail", "the roof leaks"}, {"sensor 7", "12 mm"}} {
		if status := s.call("POST", "/v1/runs/"+string(run)+"/messages", map[string]any{"source": m.source, "text": m.text}, nil); status != http.StatusOK {
			t.Errorf("message: %d", status)
		}
	}
	for _, body := range []map[string]any{{"source": "", "text": "x"}, {"source": "x", "text": ""}, {"source": strings.Repeat("x", 65), "text": "x"}, {"source": "x", "text": "y", "z": 1}} {
		if status := s.call("POST", "/v1/runs/"+string(run)+"/messages", body, nil); status != http.StatusBadRequest {
			t.Errorf("%v: %d", body, status)
		}
	}
	if v := s.view(run); v.Status != protocol.Waiting {
		t.Errorf("a message took the place of a choice: %s", v.Status)
	}
	s.call("POST", "/v1/runs/"+string(run)+"/answer", map[string]any{"choice": "more"}, nil)
	s.await(run, "at gate#2", func(v *api.Run) bool { return len(v.Waiting) == 1 && v.Waiting[0].Step == "gate#2" })
	var sent struct {
		Messages     []protocol.Message
		SharedPrefix int `json:"shared_prefix"`
		Resumes      *string
	}
	s.call("GET", "/v1/runs/"+string(run)+"/steps/writer%232/messages", nil, &sent)
	last := sent.Messages[len(sent.Messages)-1].Content
	first, second := strings.Index(last, "[message from mail]\nthe roof leaks"), strings.Index(last, "[message from sensor 7]\n12 mm")
	if first < 0 || second < first {
		t.Errorf("the next visit was sent %q", last)
	}
	if sent.SharedPrefix != 2 || sent.Resumes == nil || *sent.Resumes != "writer#1" {
		t.Errorf("shared prefix %d of %v", sent.SharedPrefix, sent.Resumes)
	}
}

func TestB11ServeRefusesToListenBeyondThisMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "wf.example.org:0"} {
		out, err := wfIn(dir, "serve", "--listen", listen).CombinedOutput()
		if exitOf(t, err) != 2 || !strings.Contains(string(out), "TLS and a token") {
			t.Errorf("--listen %s: %v\n%s", listen, err, out)
		}
	}
}

// A daemon that is killed loses nothing that anyone has seen. Started again it goes on with what
// ran, is as it was where it waited, and leaves alone what a person suspended.
func TestK08KilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	s := serveTalk(t)
	args := s.cmd.Args[4:]
	waits := s.started(map[string]any{"workflow": "talk"})
	before := s.awaitStatus(waits, protocol.Waiting)
	held := s.started(map[string]any{"workflow": "block", "title": "held"})
	s.await(held, "begun", func(v *api.Run) bool { return len(v.Steps) == 1 })
	if status := s.call("POST", "/v1/runs/"+string(held)+"/suspend", nil, nil); status != http.StatusOK {
		t.Fatalf("suspend: %d", status)
	}
	if status := s.call("POST", "/v1/runs/"+string(held)+"/resume", nil, nil); status != http.StatusOK {
		t.Fatalf("resume right after: %d", status)
	}
	s.awaitStatus(held, protocol.Running)
	if status := s.call("POST", "/v1/runs/"+string(held)+"/resume", nil, nil); status != http.StatusConflict {
		t.Fatalf("resume of what runs: %d", status)
	}
	if status := s.call("POST", "/v1/runs/"+string(held)+"/suspend", nil, nil); status != http.StatusOK {
		t.Fatalf("suspend again: %d", status)
	}
	if v := s.awaitStatus(held, protocol.Suspended); !strings.HasPrefix(v.Reason, "suspended by ") {
		t.Errorf("the reason of a suspended run: %q", v.Reason)
	}
	runs := s.started(map[string]any{"workflow": "block", "request_id": "once"})
	s.await(runs, "begun", func(v *api.Run) bool { return len(v.Steps) == 1 })
	seen := s.events(runs)
	socket := strings.TrimPrefix(s.said.Listen[0].URL, "unix:")
	s.kill()
	if _, err := os.Lstat(socket); err != nil {
		t.Errorf("the socket of a killed daemon: %v", err)
	}

	s = startServe(t, s.dir, args...)
	if v := s.view(waits); v.Head != before.Head || v.Status != protocol.Waiting {
		t.Errorf("the run that waited was at %s, is at %s, %s", before.Head, v.Head, v.Status)
	}
	var again struct {
		ID    protocol.RunID
		Fresh bool
	}
	if s.call("POST", "/v1/runs", map[string]any{"workflow": "block", "request_id": "once"}, &again); again.ID != runs || again.Fresh {
		t.Errorf("the request id that was used started %+v", again)
	}
	s.await(runs, "gone on with", func(v *api.Run) bool { return v.Seq > protocol.Seq(len(seen)) })
	write(t, s.dir, "go", "")
	v := s.awaitStatus(runs, protocol.Done)
	if v.Steps[0].Text != "over" {
		t.Errorf("concluded %q", v.Steps[0].Text)
	}
	now := s.events(runs)
	for i, e := range seen {
		if now[i] != e {
			t.Errorf("event %d was\n%s\nand is\n%s", i+1, e, now[i])
		}
	}
	if v := s.view(held); v.Status != protocol.Suspended {
		t.Errorf("what a person suspended is %s", v.Status)
	}
	s.call("POST", "/v1/runs/"+string(waits)+"/answer", map[string]any{"choice": "stop"}, nil)
	s.awaitStatus(waits, protocol.Done)
	var report cas.Report
	if s.call("GET", "/v1/runs/"+string(runs)+"/verify", nil, &report); !report.OK {
		t.Errorf("verify: %+v", report)
	}
}

func TestADaemonThatIsStoppedGoesOnWhenItIsStartedAgain(t *testing.T) {
	t.Parallel()
	s := serveTalk(t)
	args := s.cmd.Args[4:]
	run := s.started(map[string]any{"workflow": "block"})
	s.await(run, "begun", func(v *api.Run) bool { return len(v.Steps) == 1 })
	if status := s.stop(); status != 143 {
		t.Errorf("exit %d", status)
	}
	var shown api.Run
	out, err := wfIn(s.dir, "show", "-1", "-o", "json").Output()
	if err := errors.Join(err, json.Unmarshal(out, &shown)); err != nil {
		t.Fatal(err)
	}
	if shown.Status != protocol.Suspended || shown.Code != protocol.ErrServeStopped.Code {
		t.Errorf("stopped it is %s %s", shown.Status, shown.Code)
	}
	s = startServe(t, s.dir, args...)
	write(t, s.dir, "go", "")
	s.awaitStatus(run, protocol.Done)
}

// beside a daemon that drives a run the other commands answer as ever.
func TestX01CommandsBesideADaemon(t *testing.T) {
	t.Parallel()
	s := serveTalk(t)
	run := string(s.started(map[string]any{"workflow": "block"}))
	s.await(protocol.RunID(run), "begun", func(v *api.Run) bool { return len(v.Steps) == 1 })
	for _, args := range [][]string{{"ls"}, {"show", run}, {"replay", run}, {"cost", run}, {"log", run}, {"verify", run}, {"run", "talk.yaml"}} {
		begun := time.Now()
		out, err := wfIn(s.dir, append(args, "-o", "json")...).CombinedOutput()
		if status := exitOf(t, err); status != 0 && status != 8 || strings.Contains(string(out), "locked") {
			t.Errorf("wf %s: exit %d\n%s", strings.Join(args, " "), status, out)
		}
		t.Logf("wf %s: %s", args[0], time.Since(begun).Round(time.Millisecond))
	}
	out, err := wfIn(s.dir, "resume", run).CombinedOutput()
	if status := exitOf(t, err); status != 5 || !strings.Contains(string(out), "driven by process") {
		t.Errorf("driving it twice: exit %d\n%s", status, out)
	}
	// The run that wf run left waiting is answered through the daemon, which goes on with it; an
	// answer of the command line to a run of the daemon reaches it too.
	var list struct{ Items []api.Row }
	if s.call("GET", "/v1/runs?status=waiting", nil, &list); len(list.Items) != 1 {
		t.Fatalf("%d runs wait", len(list.Items))
	}
	other := list.Items[0].ID
	s.call("POST", "/v1/runs/"+string(other)+"/answer", map[string]any{"choice": "more"}, nil)
	s.await(other, "at gate#2", func(v *api.Run) bool { return len(v.Waiting) == 1 && v.Waiting[0].Step == "gate#2" })
	if out, err := wfIn(s.dir, "answer", string(other), "--choice", "stop", "--record").CombinedOutput(); err != nil && exitOf(t, err) == 2 {
		t.Errorf("%v\n%s", err, out)
	}
	s.awaitStatus(other, protocol.Done)
	if status := s.call("POST", "/v1/runs/"+run+"/cancel", map[string]any{"reason": "enough"}, nil); status != http.StatusOK {
		t.Errorf("cancel: %d", status)
	}
	s.awaitStatus(protocol.RunID(run), protocol.Cancelled)
}
