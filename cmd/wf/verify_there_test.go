package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// falseServer answers every request of wf with the JSON of a path, "" is any; GET …/archive with a file.
func falseServer(t *testing.T, archive string, answers map[string]string) []string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if archive != "" && strings.HasSuffix(r.URL.Path, "/archive") {
			http.ServeFile(w, r, archive)
			return
		}
		body, ok := answers[r.URL.Path]
		if !ok {
			body = answers[""]
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--hub", s.URL, "--hub-token-file", token}
}

// A server that answers with the archive of another run, sound as it is, has not proved the run that was asked for.
func TestTheArchiveOfAnotherRunProvesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	write(t, p.dir, "quick.yaml", "wf: 1\nname: quick\nroles: {quick: {run: echo quick, timeout: 1m}}\n")
	p.wf(0, "run", "quick.yaml", "-q")
	car := filepath.Join(p.dir, "run.car")
	p.wf(0, "export", "-1", "-o", car)
	there := falseServer(t, car, map[string]string{"": `{"items":[{"id":"ANOTHER000"}]}`})
	out := p.wf(7, append(there, "verify", "ANOTHER000")...)
	if !strings.Contains(string(out), "run/ANOTHER000") || strings.Contains(string(out), "✓") {
		t.Errorf("wf verify:\n%s", out)
	}
}
