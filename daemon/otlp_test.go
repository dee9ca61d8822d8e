package daemon_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/daemon"
	"wf/files/filestest"
	"wf/protocol"
)

// collector takes traces, or does not, by what answer says.
type collector struct {
	mu     sync.Mutex
	answer func(n int) int // of the nth request, from 0
	n      int
	runs   []string // of the spans that it took: an entry for each request and run
	moved  chan struct{}
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	status := http.StatusBadRequest
	if err == nil && r.Method == http.MethodPost && r.URL.Path == "/v1/traces" && r.Header.Get("Content-Type") == "application/json" && r.Header.Get("X-Key") == "a b" {
		status = c.answer(c.n)
	}
	c.n++
	if status == http.StatusOK {
		var x struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct {
						Attributes []struct {
							Key   string
							Value struct{ StringValue string }
						}
					}
				}
			}
		}
		if err := json.Unmarshal(body, &x); err != nil {
			status = http.StatusBadRequest
		}
		found := map[string]bool{}
		for _, s := range x.ResourceSpans[0].ScopeSpans[0].Spans {
			for _, a := range s.Attributes {
				if a.Key == "wf.run" && !found[a.Value.StringValue] {
					found[a.Value.StringValue] = true
					c.runs = append(c.runs, a.Value.StringValue)
				}
			}
		}
	}
	w.WriteHeader(status)
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

func (c *collector) took() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.runs)
}

// await waits until the trace of a run was taken.
func (c *collector) await(t *testing.T, run string) {
	t.Helper()
	for !slices.Contains(c.took(), run) {
		select {
		case <-c.moved:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// A collector that is away gets the traces later, each run once, also over a restart of the daemon; what had ended
// before is not sent.
func TestTracesAreSentAsRunsEnd(t *testing.T) {
	c := &collector{moved: make(chan struct{}, 1), answer: func(n int) int {
		if n == 0 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	}}
	to := httptest.NewServer(c)
	defer to.Close()
	dir := t.TempDir()
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")
	if err := os.WriteFile(filepath.Join(dir, "one.yaml"), []byte("wf: 1\nname: one\nroles: {a: {set: {x: 1}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u, s := opened(t, dir)
	session := func(otlp string, do func(start func() protocol.RunID)) {
		t.Helper()
		d, err := daemon.New(u, s, daemon.Options{Dir: dir, Workflows: []string{dir}, Name: "desk", OTLP: otlp, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
		if err != nil {
			t.Fatal(err)
		}
		d.Start()
		do(func() protocol.RunID {
			run, _, err := d.Service.Start(t.Context(), api.Start{Workflow: "one"})
			if err != nil {
				t.Fatal(err)
			}
			return run
		})
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	session("", func(start func() protocol.RunID) {
		run := start()
		e := u.Engine(s, nil)
		for {
			now, err := s.Changes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if st, err := e.State(t.Context(), run); err != nil {
				t.Fatal(err)
			} else if st.Status().Final() {
				return
			}
			if _, err := s.AwaitChange(t.Context(), now); err != nil {
				t.Fatal(err)
			}
		}
	})
	var first, second, third string
	session(to.URL, func(start func() protocol.RunID) {
		sent := filepath.Join(s.Dir(), daemon.Dir)
		err := filestest.Await(t.Context(), sent, func() (begun bool) { // what had ended is noted
			names, _ := filepath.Glob(filepath.Join(sent, "otlp-*.jsonl"))
			for _, name := range names {
				b, err := os.ReadFile(name)
				begun = err == nil && strings.Contains(string(b), "wf.otlp/v1")
			}
			return begun
		})
		if err != nil {
			t.Fatal(err)
		}
		first = string(start())
		c.await(t, first)
		second = string(start())
		c.await(t, second)
	})
	session(to.URL, func(start func() protocol.RunID) {
		third = string(start())
		c.await(t, third)
	})
	took := c.took()
	if n := len(slices.DeleteFunc(slices.Clone(took), func(run string) bool { return run != first })); n != 1 {
		t.Errorf("the first trace was sent %d times", n)
	}
	want := []string{first, second, third} // the second maybe twice: its daemon may have ended before that was noted
	slices.Sort(want)
	slices.Sort(took)
	if diff := cmp.Diff(want, slices.Compact(took)); diff != "" {
		t.Error(diff)
	}
}
