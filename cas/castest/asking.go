package castest

import (
	"sync"
	"testing"

	"wf/cas"
	"wf/protocol"
)

// AskForDriver asks from two goroutines whether a process drives a run, again and again until stop
// is called. By the return of stop each has asked 10,000 times at least.
func AskForDriver(t testing.TB, s *cas.Store, run protocol.RunID) (stop func()) {
	over := make(chan struct{})
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			for n := 0; ; n++ {
				if _, err := s.Driven(t.Context(), run); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-over:
					if n >= 10_000 {
						return
					}
				default:
				}
			}
		})
	}
	return func() {
		close(over)
		asking.Wait()
	}
}
