package cas

import (
	"errors"
	"testing"
	"time"

	"wf/protocol"
)

// A store that is closed while a reader is on its way in lets it in or refuses it. What the reader
// began may end later, and shares nothing with Close that changes: the race detector says so.
func TestAStoreIsClosedWhileAReaderComesIn(t *testing.T) {
	dir := openSample(t).Dir()
	for range 50 {
		s, err := Open(t.Context(), dir, Options{Wait: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		s.gate.pause()() // the next reader has to open the database
		comes, read := make(chan struct{}), make(chan error, 1)
		go func() {
			close(comes)
			_, err := s.Heads(t.Context(), protocol.RunHead(""))
			read <- err
		}()
		<-comes
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-read; err != nil && !errors.Is(err, errClosed) {
			t.Fatal(err)
		}
	}
}
