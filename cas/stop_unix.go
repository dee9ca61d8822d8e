//go:build unix

package cas

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// HandleStop makes Ctrl-Z (SIGTSTP) let the store go before the process stops, so that a
// stopped process never keeps others out; what comes meanwhile waits until it is continued. It
// works until Close. A program with several stores handles each.
func (s *Store) HandleStop() {
	if signal.Ignored(syscall.SIGTSTP) {
		return // who started the process does not want it to stop
	}
	s.handleStop(func() error { return syscall.Kill(os.Getpid(), syscall.SIGSTOP) })
}

func (s *Store) handleStop(stop func() error) {
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
	s.closing.Lock()
	defer s.closing.Unlock()
	s.atClose = append(s.atClose, func() {
		signal.Stop(signals)
		close(quit)
		wg.Wait()
	})
}
