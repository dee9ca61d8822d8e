package compose

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"wf/agentkit/config"
	"wf/agentkit/sandbox"
	"wf/engine"
	"wf/protocol"
)

// seeding builds Go's standard library for commands that reach a network, beside the first run that has such
// commands in a Go project, until wf ends; the next wf goes on. Without it the first go test in each workspace
// builds what it needs of it.
type seeding struct {
	mu   sync.Mutex
	stop context.CancelFunc // nil before it has begun
	done chan struct{}
}

// start begins in the background, once, where a run has use for it.
func (s *seeding) start(u *Setup, loaded *config.Loaded, c engine.Candidate) {
	if u.Inside() || !buildsGo(c.Workspace) || !hasNetwork(loaded, c) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.done = stop, make(chan struct{})
	go func() {
		defer close(s.done)
		if err := sandbox.SeedGo(ctx); err != nil && ctx.Err() == nil {
			u.Warn(err)
		}
	}()
}

// end stops what start began, and waits for that.
func (s *seeding) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
		<-s.done
	}
}

// buildsGo reports whether a workspace is a Go project.
func buildsGo(workspace string) bool {
	for _, name := range []string{"go.mod", "go.work"} {
		if info, err := os.Lstat(filepath.Join(workspace, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// hasNetwork reports whether a run has confined commands that reach a network.
func hasNetwork(loaded *config.Loaded, c engine.Candidate) bool {
	all := c.Program.HasAgent() || loaded.Defaults.Sandbox == protocol.SandboxOn
	for x := range confinedRoles(c.Program, all) {
		if reachesOut(x.Role) {
			return true
		}
	}
	return false
}
