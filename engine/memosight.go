package engine

import (
	"context"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
	"wf/roles/workspace"
)

// A sight is what was seen of all that tools of agents can see of a directory: what has not changed since is not read again.
type sight struct {
	dir   string
	busy  chan struct{} // holds one while it is looked at
	seen  *workspace.Seen
	nodes map[protocol.Link][]byte // of its tree, and of some before
	live  int                      // how many of them one tree had
}

// sights are those of an engine.
type sights struct {
	mu   sync.Mutex
	list []*sight // the one used last at the end
}

// maxSights bounds them; the one used least lately is forgotten.
const maxSights = 4

func (all *sights) of(dir string) *sight {
	all.mu.Lock()
	defer all.mu.Unlock()
	if i := slices.IndexFunc(all.list, func(s *sight) bool { return s.dir == dir }); i >= 0 {
		s := all.list[i]
		all.list = append(slices.Delete(all.list, i, i+1), s)
		return s
	}
	s := &sight{dir: dir, busy: make(chan struct{}, 1)}
	all.list = append(all.list, s)
	if len(all.list) > maxSights {
		all.list = slices.Delete(all.list, 0, 1)
	}
	return s
}

// shootAll is shoot for all that tools of an agent can see of a directory.
func (e *Engine) shootAll(ctx context.Context, dir string) (outline, error) {
	s := e.sights.of(dir)
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return outline{}, context.Cause(ctx)
	}
	defer func() { <-s.busy }()
	return s.shoot(ctx)
}

func (s *sight) shoot(ctx context.Context) (now outline, err error) {
	if s.seen == nil {
		s.seen, s.nodes, s.live = workspace.NewSeen(settleTime), map[protocol.Link][]byte{}, 0
	}
	defer func() {
		if err != nil { // it is not known what was seen
			s.seen, s.nodes = nil, nil
		}
	}()
	odd := ""
	all := outline{nodes: s.nodes}
	t := taking(everything(), all.put)
	t.Whole, t.Seen = true, s.seen
	t.Hidden = func(path string, mode fs.FileMode) {
		if workspace.Reserved(filepath.Base(path)) == "" && (odd == "" || path < odd) {
			odd = path
		}
		now.hidden = append(now.hidden, path+" "+mode.Type().String())
	}
	if now.root, _, err = workspace.Take(ctx, s.dir, t); err != nil {
		return now, err
	}
	if odd != "" {
		return now, roles.NotReusable("its input %s has a name that no tree can hold", odd)
	}
	slices.Sort(now.hidden)
	if len(s.nodes) > 2*s.live+maxStale {
		if err := s.forget(&all, now.root); err != nil {
			return now, err
		}
	}
	now.nodes = maps.Clone(s.nodes)
	return now, nil
}

// maxStale bounds the nodes that are kept of earlier trees, besides as many as the newest one has.
const maxStale = 1000

// forget keeps the nodes of one tree alone.
func (s *sight) forget(all *outline, root protocol.Link) error {
	kept := map[protocol.Link][]byte{}
	read := func(l protocol.Link) ([]byte, error) {
		b, err := all.read(l)
		kept[l] = b
		return b, err
	}
	for _, err := range tree.Walk(read, root) {
		if err != nil {
			return err
		}
	}
	s.nodes, s.live = kept, len(kept)
	return nil
}
