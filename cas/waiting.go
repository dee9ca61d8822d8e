package cas

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"wf/protocol"
)

// How long a store is waited for that another process has, where Options.Wait does not say it. A queue that moves is waited for as long
// as it takes, also behind a slow disk; only a process that does not go on ends the wait.
const (
	lookEvery   = time.Second      // at the one that has it
	mostStopped = 25 * time.Second // behind a process that was stopped (SIGSTOP, a debugger)
	mostSame    = 10 * time.Minute // of one that neither commits, nor gives the store to another process
	tellAgain   = time.Minute      // the wait is shown no more often
)

// sight is what a look at the process with the store shows.
type sight struct {
	pid     int // 0 is not known
	stopped bool
	mark    int64 // changes with each commit, and with each process that gets the store
}

func (s sight) String() string {
	switch {
	case s.pid == 0:
		return "another process"
	case s.stopped:
		return fmt.Sprintf("process %d (stopped)", s.pid)
	}
	return fmt.Sprintf("process %d", s.pid)
}

// advice is what to do where the wait has ended.
func (s sight) advice() string {
	switch {
	case s.pid == 0:
		return protocol.ErrBusy.Hint
	case s.stopped:
		return fmt.Sprintf("let it go on with kill -CONT %d", s.pid)
	}
	return fmt.Sprintf("try again when it is done; ps -o pid,stat,etime,args -p %d shows what it is", s.pid)
}

// vigil is one wait, look by look. It is pure: time comes with the looks.
type vigil struct {
	limit time.Duration // Options.Wait; 0 is as long as it goes on
	last  sight
	since time.Duration // when last was seen first, from the start of the wait
	told  bool          // of this wait, and so of whether the process is stopped
}

// next is when the next look is due, after one at a time of the wait.
func (v *vigil) next(at time.Duration) time.Duration {
	if v.limit > 0 {
		return min(lookEvery, max(0, v.limit-at))
	}
	return lookEvery
}

// look reports whether the wait ends, and whether it is to be shown.
func (v *vigil) look(at time.Duration, s sight) (over, tell bool) {
	tell = !v.told || s.stopped && !v.last.stopped
	if s != v.last {
		v.last, v.since = s, at
	}
	same := at - v.since
	over = v.limit > 0 && at >= v.limit || s.stopped && same >= mostStopped || same >= mostSame
	if over || at < lookEvery {
		return over, false
	}
	v.told = true
	return false, tell
}

// watch looks now and then at the process that a is waiting for, until the returned function is called or it has given a up.
func (g *gate) watch(a *attempt) (stop func()) {
	v, began, mark := &vigil{limit: g.opts.Wait}, time.Now(), g.mark()
	var timer *time.Timer
	timer = time.AfterFunc(math.MaxInt64, func() {
		s, at := g.sight(mark), time.Since(began)
		mark = s.mark
		over, tell := v.look(at, s)
		switch {
		case a.abandoned():
			return
		case over:
			g.finish(a, nil, g.busy(s, at))
			return
		case tell && g.mayTell(s):
			g.opts.warn(fmt.Errorf("waiting for the store %s, held by %s", g.dir, s))
		}
		timer.Reset(v.next(at))
	})
	timer.Reset(v.next(0))
	return func() { timer.Stop() }
}

// mayTell reports whether a wait is to be shown: in a process with many short waits at most one in a minute.
func (g *gate) mayTell(s sight) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !s.stopped && !g.told.IsZero() && time.Since(g.told) < tellAgain {
		return false
	}
	g.told = time.Now()
	return true
}

// busy is the error that names the process with the store.
func (g *gate) busy(s sight, waited time.Duration) error {
	return protocol.ErrBusy.With(s.advice(), "%s is held by %s; waited %s", g.dir, s, waited.Round(time.Millisecond))
}

// mark is when the lock file was written to last: by each process that gets the store, and with each commit.
func (g *gate) mark() int64 {
	fi, err := os.Stat(filepath.Join(g.dir, fileLock))
	if err != nil {
		return 0
	}
	return fi.ModTime().UnixNano()
}

// sight looks at the process that has the store, or that is to have it next and keeps the others from it: one that is stopped there holds
// the turn alone. The kernel is asked only where nothing has moved since before: that stalls the locks of all processes, and 200 that
// wait would have no time for anything else.
func (g *gate) sight(before int64) (s sight) {
	lock := filepath.Join(g.dir, fileLock)
	s.mark = g.mark()
	s.pid, _ = readPID(lock)
	s.stopped = stoppedProcess(s.pid)
	if s.mark != before {
		return s
	}
	if pid, ok := flockedBy(lock); ok && pid != s.pid { // of several readers the note names only the last
		s.pid, s.stopped = pid, stoppedProcess(pid)
	}
	if next, ok := flockedBy(filepath.Join(g.dir, fileTurn)); ok && !s.stopped && stoppedProcess(next) {
		s.pid, s.stopped = next, true
	}
	return s
}

// pidSize is the length of the note of a process in a lock file, behind the commit counter.
const pidSize = 21

// writePID notes in a lock file which process has it, for those that wait.
func writePID(lock *os.File) error {
	_, err := lock.WriteAt(fmt.Appendf(nil, "%-*d\n", pidSize-1, os.Getpid()), counterSize)
	return err
}

func readPID(path string) (int, bool) {
	lock, err := openLock(path, true)
	if err != nil {
		return 0, false
	}
	defer lock.Close()
	var note [pidSize]byte
	if _, err := lock.ReadAt(note[:], counterSize); err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(note[:])))
	return pid, err == nil
}
