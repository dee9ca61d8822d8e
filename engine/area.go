package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"

	"wf/cas"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
)

// SeenFiles keep what was seen of the files of workspaces from one process to the next: what has not changed is not read
// again. They are outside of every workspace, for what is in them is believed.
type SeenFiles interface {
	// Load is what Save was given last under a key, nil for nothing.
	Load(key string) []byte
	Save(key string, data []byte) error
	// Drop removes what begins with one of these texts, under all keys.
	Drop(begins ...string) error
}

// An area is a workspace whose files are recorded by runs of this process.
type area struct {
	key string // in SeenFiles

	busy    chan struct{} // holds one while a tree is taken
	seen    *workspace.Seen
	keeper  protocol.RunID // whose head kept keeps what was seen
	kept    protocol.Link
	written protocol.Link // kept, as it was in SeenFiles

	users int // drivers

	mu    sync.Mutex
	rules map[protocol.Link]map[string][]byte // files of rules, by the first tree of a run
}

// areas are those of an engine.
type areas struct {
	mu   sync.Mutex
	list []*area // the one used last at the end
}

// maxAreas bounds those that are kept while nothing is driven in them.
const maxAreas = 4

// enterArea is the area of a workspace, for files in which these secrets are looked for. leaveArea is to be called with it.
func (e *Engine) enterArea(dir string, secrets map[string]string, maxSize int64) *area {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %d", dir, e.Store.Dir(), maxSize)
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		fmt.Fprintf(sum, " %q %q", name, secrets[name])
	}
	key := hex.EncodeToString(sum.Sum(nil))
	all := &e.areas
	all.mu.Lock()
	defer all.mu.Unlock()
	i := slices.IndexFunc(all.list, func(a *area) bool { return a.key == key })
	if i >= 0 {
		a := all.list[i]
		all.list = append(slices.Delete(all.list, i, i+1), a)
		a.users++
		return a
	}
	a := &area{key: key, busy: make(chan struct{}, 1), rules: map[protocol.Link]map[string][]byte{}, users: 1}
	a.load(e.Seen)
	all.list = append(all.list, a)
	for i := 0; len(all.list) > maxAreas && i < len(all.list); {
		if all.list[i].users > 0 {
			i++
			continue
		}
		all.list = slices.Delete(all.list, i, i+1)
	}
	return a
}

// leaveArea is called when a driver is done with its area.
func (e *Engine) leaveArea(a *area) {
	err := a.locked(context.Background(), func() error { return a.save(e.Seen) })
	if err != nil {
		e.warn(fmt.Errorf("what was seen of the files of a workspace could not be kept, they are read again next time: %w", err))
	}
	e.areas.mu.Lock()
	a.users--
	e.areas.mu.Unlock()
}

// load reads what was seen. Where that cannot be done nothing is known.
func (a *area) load(from SeenFiles) {
	a.forget()
	if from == nil {
		return
	}
	head, data, _ := bytes.Cut(from.Load(a.key), []byte("\n"))
	run, kept, _ := bytes.Cut(head, []byte(" "))
	link, err := protocol.ParseLink(string(kept))
	if err != nil {
		return
	}
	if seen, err := workspace.DecodeSeen(data); err == nil {
		a.seen, a.keeper, a.kept, a.written = seen, protocol.RunID(run), link, link
	}
}

func (a *area) save(to SeenFiles) error {
	if to == nil || !a.kept.Defined() || a.kept == a.written {
		return nil
	}
	err := to.Save(a.key, fmt.Appendf(nil, "%s%s\n%s", seenOf(a.keeper), a.kept, a.seen.Encode()))
	if err == nil {
		a.written = a.kept
	}
	return err
}

// seenOf begins what was seen, and is kept by a run.
func seenOf(run protocol.RunID) string { return string(run) + " " }

// dropSeen removes what was seen and is kept by runs: it has the names of their files. The caller has the claims of the runs,
// so that none of their drivers saves it again, and drops next what it was taken from.
func (e *Engine) dropSeen(runs ...protocol.RunID) error {
	if e.Seen == nil {
		return nil
	}
	begins := make([]string, len(runs))
	for i, run := range runs {
		begins[i] = seenOf(run)
	}
	if err := e.Seen.Drop(begins...); err != nil {
		return fmt.Errorf("the names of the files of %s cannot be removed: %w", protocol.Plural(len(runs), "run"), err)
	}
	return nil
}

// rulesOf are the files of rules that a tree has, by their paths: chats are driven anew for each answer.
func (a *area) rulesOf(first protocol.Link, read tree.Read) (map[string][]byte, error) {
	a.mu.Lock()
	in, ok := a.rules[first]
	a.mu.Unlock()
	if ok {
		return in, nil
	}
	in, err := rulesIn(read, first)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.rules) >= maxRules {
		clear(a.rules)
	}
	a.rules[first] = in
	return in, nil
}

// maxRules bounds the trees whose files of rules are kept.
const maxRules = 16

// settleTime is how old a change is before the content behind it is believed; benchmarks do not wait for it.
var settleTime = workspace.Settled

// forget is for when it is not known whether the store has what was seen.
func (a *area) forget() {
	a.seen, a.keeper, a.kept = workspace.NewSeen(settleTime), "", protocol.Link{}
}

// locked runs f while nothing else is taken in the area.
func (a *area) locked(ctx context.Context, f func() error) error {
	select {
	case a.busy <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-a.busy }()
	return f()
}

// A picture says how take works.
type picture struct {
	run    protocol.RunID
	dir    string
	head   protocol.Link // of the trees of the run, as far as it has some
	last   protocol.Link // that it keeps
	taking workspace.Taking
}

// take takes the tree of the area for a run, which keeps it when take returns. The blocks come in batches, so that others
// commit meanwhile; no collection runs until the last of them, in which the head of the run moves. It runs in locked.
func (a *area) take(ctx context.Context, e *Engine, p *picture) (err error) {
	keep := newKeeper(ctx, e)
	defer keep.letGo()
	if a.kept.Defined() && a.keeper != p.run {
		if err := keep.hold(); err != nil {
			return err
		}
		h, err := e.Store.Head(ctx, protocol.FilesHead(a.keeper))
		if err != nil || h.Link != a.kept {
			a.forget()
		}
	}
	t := p.taking
	t.Put, t.Seen, t.Whole = keep.put, a.seen, true
	root, _, err := workspace.Take(ctx, p.dir, t)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			a.forget()
		}
	}()
	if root != p.last {
		kept, err := cas.Encode(protocol.FilesKept{Kind: protocol.KindFilesKept, V: protocol.RecordVersion, Prev: p.head, Tree: root})
		if err != nil {
			return err
		}
		move := cas.Move{Name: protocol.FilesHead(p.run), Old: p.head, New: kept.Link, Note: "files"}
		if err := e.Store.Commit(ctx, cas.Batch{Blocks: append(keep.blocks, kept), Moves: []cas.Move{move}, Fence: fenceOf(ctx)}); err != nil {
			return err
		}
		p.head, p.last = kept.Link, root
	}
	a.keeper, a.kept = p.run, p.head
	return nil
}
