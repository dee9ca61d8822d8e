//go:build unix

package cas

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// HandleStop makes Ctrl-Z (SIGTSTP) let the store go before the process stops, so that a
// stopped process never keeps others out; what comes meanwhile waits until it is continued.
// It works until done is called. A program with several stores handles each.
func (s *Store) HandleStop() (done func()) {
	return s.handleStop(func() error { return syscall.Kill(os.Getpid(), syscall.SIGSTOP) })
}

func (s *Store) handleStop(stop func() error) (done func()) {
	signals := make(chan os.Signal, 1)
	quit := make(chan struct{})
	signal.Notify(signals, syscall.SIGTSTP)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-signals:
				resume := s.gate.pause()
				_ = stop() // returns when the process is continued; a refusal means it never stopped
				resume()
			case <-quit:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(signals)
		close(quit)
		wg.Wait()
	})
}
