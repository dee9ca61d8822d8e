package daemon

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"wf/service/compose"
)

// wf doctor tells a daemon that answers and takes no requests from one that does.
func TestADaemonThatIsNotReadyIsBad(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	dir, err := os.MkdirTemp("", "wf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_STATE_HOME", dir)
	store := filepath.Join(dir, "store")
	socket, err := SocketPath(store)
	if err != nil {
		t.Fatal(err)
	}
	if c := Check(t.Context(), &compose.Setup{}, store); c.State != "ok" {
		t.Errorf("without one: %+v", c)
	}
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var ready atomic.Bool
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/info":
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"schema":"wf.info/v1","kind":"agent","name":"here","version":"1","scopes":[]}`))
		case ready.Load():
			w.Write([]byte(`{"schema":"wf.ready/v1","ready":true}`))
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte(`{"schema":"wf.ready/v1","ready":false}`))
		}
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	for now, want := range map[bool]string{true: "ok", false: "bad"} {
		ready.Store(now)
		if c := Check(t.Context(), &compose.Setup{}, store); c.State != want || (want == "bad") != (c.Fix != "") {
			t.Errorf("ready %v: %+v", now, c)
		}
	}
}
