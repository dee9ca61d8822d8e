package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"wf/agentkit/modeltest"
	"wf/api"
	"wf/protocol"
)

// heldYAML has an agent that is prepared with what its memory recalls while another one has the only request that the
// provider may have at once. %s are keys of that agent.
const heldYAML = `wf: 1
name: kept
roles:
  talker: {prompt: You talk., model: mine/talks, timeout: 1m}
  gate: {run: "until [ -e talking ]; do sleep 0.01; done", timeout: 1m, sandbox: off}
  asks: {prompt: You remember., model: mine/other, timeout: 1m, memory: {scope: notes}%s}
edges:
  - {from: START, to: %s}
  - {from: gate, to: asks, prompt: Where is the deploy key}
  - {from: [talker, asks], to: END}
`

// limitedProvider answers embeddings at once, and the role talker once it is let go.
type limitedProvider struct {
	*httptest.Server
	mu       sync.Mutex
	letGo    chan struct{}
	embedded int
}

func serveLimited(t *testing.T, dir string) *limitedProvider {
	s := &limitedProvider{letGo: make(chan struct{})}
	models := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		a := modeltest.Text("Done.")
		if strings.Contains(string(r.Body), "task_complete") {
			a = modeltest.Calls(modeltest.Call{ID: "call", Name: "task_complete", Args: `{"final_response":"In the vault.","summary":"Found it."}`})
		}
		if strings.Contains(string(r.Body), "You talk.") {
			a.Before = func() {
				write(t, dir, "talking", "")
				s.mu.Lock()
				until := s.letGo
				s.mu.Unlock()
				<-until
			}
		}
		return a
	})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/embeddings") {
			models.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.embedded++
		s.mu.Unlock()
		var vectors []string
		for i := range strings.Count(string(body), "key") {
			vectors = append(vectors, fmt.Sprintf(`{"index":%d,"embedding":[1,0.5]}`, i))
		}
		fmt.Fprintf(w, `{"data":[%s],"usage":{"total_tokens":3}}`, strings.Join(vectors, ","))
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	t.Cleanup(s.release)
	return s
}

// release lets the talker go, now and later.
func (s *limitedProvider) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.letGo:
	default:
		close(s.letGo)
	}
}

// What keeps a visit back while it is prepared, before its first request to a model, is a hold as any other: the visit is
// shown as held from then on, its time does not count, and a process that is killed meanwhile changes nothing of what is
// concluded.
func TestAHoldWhileAVisitIsPreparedIsJournaled(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name, role, start string
		killed            bool
	}{
		{"an ordinary role", "", "[talker, gate]", false},
		{"an ordinary role, killed", "", "[talker, gate]", true},
		{"a task, killed", ", context: task", "[talker, gate]", true},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			s := serveLimited(t, p.dir)
			home := strings.TrimPrefix(p.env[0], "HOME=")
			config := filepath.Join(home, ".config/wf")
			if err := os.MkdirAll(config, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, config, "config.yaml",
				"providers: {mine: {wire: openai, base_url: '"+s.URL+"/v1', key_env: OPENAI_API_KEY, limits: {in_flight: 1}}}\n")
			write(t, p.dir, "kept.yaml", fmt.Sprintf(heldYAML, x.role, x.start))
			p.wf(0, "memory", "add", "The deploy key is in the vault.", "--scope", "notes", "--model", "mine/vectors")
			p.wf(0, "trust", "kept.yaml", "--yes")
			cmd, ended := p.begin("run", "kept.yaml", "-q")
			await(t, "the visit is held", func() bool {
				var list struct{ Items []api.Row }
				if p.read(&list, "ls"); len(list.Items) == 0 {
					return false
				}
				var v api.Run
				p.read(&v, "show", "-1")
				asks := stepOf(&v, "asks")
				return asks != nil && strings.Contains(asks.Held, "1 request at once of the provider mine") && asks.Status == "running"
			})
			if x.killed {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				<-ended
			}
			s.release()
			if <-ended; x.killed {
				p.wf(0, "resume", "-1", "-q")
			}
			var v api.Run
			p.read(&v, "show", "-1")
			if v.Status != protocol.Done {
				t.Fatalf("%s: %s", v.Status, v.Reason)
			}
			if asks := stepOf(&v, "asks"); len(asks.Attempts) != 1 || asks.Held != "" {
				t.Errorf("%+v", asks)
			}
			log := string(p.wf(0, "log", "-1"))
			for _, want := range []string{"asks#1  is prepared", "asks#1  held", "asks#1  started"} {
				if !strings.Contains(log, want) {
					t.Errorf("no %q in\n%s", want, log)
				}
			}
			if text := string(p.wf(0, "messages", "-1:asks#1")); !strings.Contains(text, "The deploy key is in the vault.") {
				t.Errorf("the agent was sent\n%s", text)
			}
			p.wf(0, "verify", "-1")
			p.wf(0, "replay", "-1", "--check")
		})
	}
}

// stepOf is the first step of a role, nil for none.
func stepOf(v *api.Run, role string) *api.Step {
	for _, s := range v.Steps {
		if s.Role == role {
			return s
		}
	}
	return nil
}
