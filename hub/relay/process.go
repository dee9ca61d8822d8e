package relay

import (
	"crypto/rand"
	"net/http"
	"sync"

	"wf/hub/internal/lately"
)

// A Process is what the connections of one worker to several hubs have in common.
type Process struct {
	instance string
	epochs   lately.Map[string, uint64] // the newest leases of the jobs that it was offered

	mu          sync.Mutex
	connections map[*connection]bool // that a hub took
}

// NewProcess is that of a worker which connects to several hubs.
func NewProcess() *Process {
	p := &Process{instance: rand.Text(), connections: map[*connection]bool{}}
	p.epochs.Max = maxEpochs
	return p
}

// connected notes a connection until gone is called.
func (p *Process) connected(s *connection) (gone func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections[s] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.connections, s)
	}
}

// begins tells the other hubs that a job of one of them is begun, or was not: they count it until this worker says that it has the
// run. A hub that cannot be reached loses its connection by that.
func (p *Process) begins(of *connection, job string, ok bool) {
	p.mu.Lock()
	var others []*connection
	for s := range p.connections {
		if s != of {
			others = append(others, s)
		}
	}
	p.mu.Unlock()
	for _, s := range others {
		_ = s.lines.send(message{Type: msgBegun, Job: job, OK: ok})
	}
}

// status is an answer whose status is kept.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }
