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

// seeding builds of Go's standard library what commands cannot take from the cache of the user, in the background, until
// wf ends; the next wf goes on. Without it the first go test in each workspace builds what it needs of it, and each
// command whose result may be reused.
type seeding struct {
	mu   sync.Mutex
	stop context.CancelFunc // nil before it has begun
	done chan struct{}
}

// seedOnline begins beside the first run that has commands which reach a network in a Go project.
func (u *Setup) seedOnline(loaded *config.Loaded, c engine.Candidate) {
	if !u.Inside() && buildsGo(c.Workspace) && hasNetwork(loaded, c) {
		u.library.start(u, sandbox.SeedGo)
	}
}

// seedReused begins beside the first command in a Go project whose result may be reused. Where the user has built nothing,
// it returns when there is what tests need, or ctx is done: otherwise each command would build that, and those that come
// after it again.
func (u *Setup) seedReused(ctx context.Context) {
	u.tests.start(u, sandbox.SeedTests)
	if sandbox.BuiltGo() {
		return
	}
	select {
	case <-u.tests.done:
		u.library.start(u, sandbox.SeedGo)
	case <-ctx.Done():
	}
}

// start begins in the background, once.
func (s *seeding) start(u *Setup, build func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.done = stop, make(chan struct{})
	go func() {
		defer close(s.done)
		if err := build(ctx); err != nil && ctx.Err() == nil {
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
