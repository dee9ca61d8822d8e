package daemon

import (
	"net"
	"path/filepath"
	"testing"

	"wf/hub/guard"
)

// A daemon that is stopped while it starts closes listeners that are about to open.
func TestADoorIsClosedWhileItOpens(t *testing.T) {
	for range 50 {
		e := guard.Endpoint{Socket: filepath.Join(t.TempDir(), "wf.sock")}
		l, err := e.Listen(t.Context(), nil, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := NewListener(l, e, ListenOptions{}, false, nil, nil)
		opens, served := make(chan struct{}), make(chan error, 1)
		go func() {
			close(opens)
			served <- d.Serve(nil)
		}()
		<-opens
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if c, err := net.Dial("unix", e.Socket); err == nil {
			t.Errorf("%s is still open: %v", e.Socket, c.Close())
		}
	}
}
