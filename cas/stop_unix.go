//go:build unix

package cas

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// HandleStop makes Ctrl-Z (SIGTSTP) let the store go before the process stops, so that a
// stopped process never keeps others out; what comes meanwhile waits until it is continued. It
// works until Close. A program with several stores handles each.
func (s *Store) HandleStop() {
	if signal.Ignored(syscall.SIGTSTP) {
		return // the parent of the process does not want it to stop
	}
	s.handleStop(stopProcess)
}

// stopped bounds the wait for a process that was told to stop, and may be held by a debugger.
const stopped = time.Second

// stopProcess stops this process and returns when it goes on, or was not stopped. Kill alone
// may return before: another thread may be the one that takes the signal.
func stopProcess() error {
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	select {
	case <-goesOn:
	case <-time.After(stopped):
	}
	return nil
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
				_ = stop() // a refusal means it never stopped
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
