package socketend_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"wf/hub/internal/socketend"
)

// What the reader begins while the socket ends is either awaited or never begun.
func TestNothingBeginsBehindTheWait(t *testing.T) {
	for range 200 {
		var w socketend.Writers
		var begun, refused, ended atomic.Int32
		var reader sync.WaitGroup
		first := make(chan struct{})
		reader.Go(func() {
			close(first)
			for refused.Load() == 0 {
				if !w.Go(func() { ended.Add(1) }) {
					refused.Add(1)
					return
				}
				begun.Add(1)
			}
		})
		<-first
		w.Wait()
		at := ended.Load()
		reader.Wait()
		if ended.Load() != at || begun.Load() != at {
			t.Fatalf("%d began, %d had ended when the wait was over, %d in the end", begun.Load(), at, ended.Load())
		}
	}
}
