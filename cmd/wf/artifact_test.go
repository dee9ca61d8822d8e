package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/daemon"
)

// The files of a run are listed and fetched at a server as in its directory: from wf serve, through a hub, by wf artifact,
// and by a route that gives one of them to a program.
func TestTheFilesOfARunAreFetchedFromServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "build.yaml", "wf: 1\nname: build\nroles: {build: {run: \"mkdir out && seq 1 40000 > out/long.txt && echo '<b>' > 'out/<img>.html' && mkfifo out/pipe\", artifacts: ['out/**']}}\n")
	trustAll(t, dir)
	hub := startProcess(t, dir, "hub", "--listen", "127.0.0.1:0")
	var said api.HubServing
	if err := json.Unmarshal(hub.line, &said); err != nil {
		t.Fatal(err)
	}
	url := said.Listen[0].URL
	s := startServe(t, dir, "--listen", "unix", "--workflows", dir, "--hub", url, "--hub-token-file", said.AgentToken)
	if out, err := wfIn(dir, "--hub", url, "run", "build", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	here, err := wfIn(dir, "artifact", "-1", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list render.Artifacts
	if err := json.Unmarshal(here, &list); err != nil || len(list.Artifacts) != 3 || list.Artifacts[2].Why != "special" {
		t.Fatalf("%v %s", err, here)
	}
	for _, at := range []string{url, s.said.Listen[0].URL} {
		there, err := wfIn(dir, "--hub", at, "artifact", "-1", "-o", "json").CombinedOutput()
		if err != nil || string(there) != string(here) {
			t.Errorf("%s: %v %s", at, err, there)
		}
		to := t.TempDir()
		if out, err := wfIn(dir, "--hub", at, "artifact", "-1", "--to", to).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", at, err, out)
		}
		for _, name := range []string{"long.txt", "<img>.html"} {
			want, err := os.ReadFile(filepath.Join(dir, "out", name))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(to, "out", name)); err != nil || string(got) != string(want) {
				t.Errorf("%s: %s has %d bytes, %v", at, name, len(got), err)
			}
		}
	}

	token, err := daemon.ReadToken(said.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string, headers ...string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/v1/runs/"+string(list.Run)+"/steps/build%231/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Set(name, value)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer, string(body)
	}
	var kept render.Artifacts
	if answer, body := get("artifacts"); answer.StatusCode != 200 || json.Unmarshal([]byte(body), &kept) != nil || len(kept.Artifacts) != 3 || kept.Artifacts[1] != list.Artifacts[1] {
		t.Errorf("the list: %d %s", answer.StatusCode, body)
	}
	answer, body := get("artifact?path=out%2F%3Cimg%3E.html")
	if answer.StatusCode != 200 || body != "<b>\n" || answer.Header.Get("Content-Disposition") != "attachment" || answer.Header.Get("Content-Type") != "application/octet-stream" ||
		answer.Header.Get("X-Content-Type-Options") != "nosniff" || answer.Header.Get("ETag") != `"`+list.Artifacts[0].CID+`"` {
		t.Errorf("a file: %d %q %v", answer.StatusCode, body, answer.Header)
	}
	if again, _ := get("artifact?path=out%2F%3Cimg%3E.html", "If-None-Match: "+answer.Header.Get("ETag")); again.StatusCode != 304 {
		t.Errorf("a file that the client has: %d", again.StatusCode)
	}
	if part, body := get("artifact?path=out/long.txt", "Range: bytes=100000-100009"); part.StatusCode != 206 || len(body) != 10 || !strings.HasPrefix(part.Header.Get("Content-Range"), "bytes 100000-100009/") {
		t.Errorf("a part: %d %q %v", part.StatusCode, body, part.Header)
	}
	for path, want := range map[string]string{"out/none": "unknown_artifact", "out/pipe": "unknown_artifact", "": "bad_request"} {
		if answer, body := get("artifact?path=" + path); !strings.Contains(body, `"code":"`+want+`"`) || answer.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%q: %d %s", path, answer.StatusCode, body)
		}
	}
	if out, err := wfIn(dir, "rm", "-1", "--yes").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if answer, body := get("artifact?path=out/long.txt"); answer.StatusCode != 410 {
		t.Errorf("a file of a deleted run: %d %s", answer.StatusCode, body)
	}
}
