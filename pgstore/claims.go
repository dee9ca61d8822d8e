package pgstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"wf/cas"
	"wf/protocol"
)

// A claim is the token in the row of a head, and the worker that put it there. A tree of runs has that of its root: a head that
// begins under the fence of another run is a part of its tree, and says so in its root. This process takes the claim for the first run of a tree
// that it drives, and gives it up behind the last one.
const (
	readRoot = `select coalesce(root, name) from wf.heads where name = $1`

	// What this process may have claimed, and was not told so, is its own. A row that is there is not inserted: that would take a number.
	claimFree = `with u as (update wf.heads set token = $2, worker = $3 where name = $1 and (worker is null or worker = $3 and token = any($4::bytea[])) returning name),
	i as (insert into wf.heads(name, token, worker) select $1, $2, $3 where not exists (select from wf.heads where name = $1)
	on conflict (name) do update set token = excluded.token, worker = excluded.worker
	where heads.worker is null or heads.worker = $3 and heads.token = any($4::bytea[]) returning name),
	c as (select name from u union all select name from i),
	` + claimsRun + ` select true from c`

	// The row of a dead worker is locked, so that it does not come to life meanwhile. One that it has no more cannot be.
	claimDead = `with d as (select from wf.workers where id = $4 and beat = $5 for share),
	c as (update wf.heads set token = $2, worker = $3 where name = $1 and worker = $4
	and (exists (select from d) or $5 < 0 and not exists (select from wf.workers where id = $4)) returning name),
	` + claimsRun + ` select true from c`

	dropClaims = `with c as (update wf.heads set token = null, worker = null where name = any($1::text[]) and token = any($2::bytea[]) returning name)
	update wf.runs set worker = null where run = any(array(select substr(name, 5) from c where starts_with(name, 'run/')))`

	// What is claimed is not given out to others.
	claimsRun = `r as (update wf.runs set worker = $3 where run = any(array(select substr(name, 5) from c where starts_with(name, 'run/'))))`

	readTokens = `select name, token from wf.heads where name = any($1::text[])`
)

// tree is what one claim of this process is on: a tree of runs, or something else of which there is one.
type tree struct {
	root  string        // its name
	fence cas.Fence     // Root is "" for what is no run
	turn  chan struct{} // held while it is claimed or released
	held  int           // how many runs of it are driven here; 0 is not claimed. Held by turn.
	taken bool          // it is claimed; held by worker.mu

	life context.Context // ends when it is taken over
	lose context.CancelCauseFunc
}

func (t *tree) token() []byte { return t.fence.Token[:] }

// doubt is a claim that this process may have, and does not want.
type doubt struct {
	root  string
	token []byte
	since time.Time
}

// doubtLeases is for how many leases a doubt is settled again and again: a request that was given up may arrive late.
const doubtLeases = 20

// claim is a claim of a run; it implements cas.Claim.
type claim struct {
	w    *worker
	t    *tree
	name string // of the run
	over atomic.Bool
}

// Claim makes this process the only one that drives the tree of runs of which a run is a part, and this the only driver of the run in
// it; see engine.Claims. What a worker has claimed that is no longer heard of is taken over once this process has listened for a whole lease.
// Claim waits for that where the last beat is old; else the error wraps protocol.ErrRunLive and names the process.
func (s *Store) Claim(ctx context.Context, run protocol.RunID) (cas.Claim, error) {
	if err := cas.CheckRunID(run); err != nil {
		return nil, err
	}
	c, err := patiently(ctx, s, func() (cas.Claim, error) { return s.claim(ctx, protocol.RunHead(run)) })
	if err != nil {
		return nil, fmt.Errorf("claim run %s: %w", run, err)
	}
	return c, nil
}

// ClaimName is Claim for anything else of which there is to be one among all processes, by a name that is the head of no run.
func (s *Store) ClaimName(ctx context.Context, name string) (cas.Claim, error) {
	if !storable(name) || name == "" || strings.HasPrefix(name, protocol.RunHead("")) {
		return nil, fmt.Errorf("claim %q: no such name: %w", name, protocol.ErrUsage)
	}
	c, err := s.claim(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", name, err)
	}
	return c, nil
}

func (s *Store) claim(ctx context.Context, name string) (_ cas.Claim, err error) {
	ctx = cas.Patient(ctx, nil) // each try is a claim of its own
	w := s.worker
	if err := w.join(ctx); err != nil {
		return nil, err
	}
	if !w.reserve(name) {
		return nil, live(name, "this process")
	}
	c := &claim{w: w, name: name}
	defer func() {
		if err != nil {
			w.unreserve(name)
		}
	}()
	got, err := s.query(ctx, readRoot, text(name))
	if err != nil {
		return nil, err
	}
	root := name
	if len(got) > 0 {
		root = string(got[0][0])
	}
	if c.t, err = w.enter(ctx, root); err != nil {
		return nil, err
	}
	defer func() { <-c.t.turn }()
	if c.t.held == 0 {
		if err := w.take(ctx, c.t); err != nil {
			w.drop(c.t)
			return nil, err
		}
		w.mu.Lock()
		c.t.taken = true
		w.mu.Unlock()
	}
	c.t.held++
	return c, nil
}

// reserve takes a name among the goroutines of this process.
func (w *worker) reserve(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs[name] {
		return false
	}
	w.runs[name] = true
	return true
}

func (w *worker) unreserve(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, name)
}

// enter takes the turn at a tree.
func (w *worker) enter(ctx context.Context, root string) (*tree, error) {
	for {
		w.mu.Lock()
		t := w.trees[root]
		if t == nil {
			t = &tree{root: root, turn: make(chan struct{}, 1)}
			if strings.HasPrefix(root, protocol.RunHead("")) {
				t.fence.Root = protocol.RunOf(root)
			}
			_, _ = rand.Read(t.token()) // it never fails
			t.life, t.lose = context.WithCancelCause(context.Background())
			w.trees[root] = t
		}
		w.mu.Unlock()
		select {
		case t.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		w.mu.Lock()
		current := w.trees[root] == t
		w.mu.Unlock()
		if current {
			return t, nil
		}
		<-t.turn // it was dropped meanwhile
	}
}

// drop forgets a tree that is not claimed here any more.
func (w *worker) drop(t *tree) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trees[t.root] == t {
		delete(w.trees, t.root)
	}
}

// take claims a tree in the database; the caller has the turn.
func (w *worker) take(ctx context.Context, t *tree) error {
	var waits bool
	var beat int64 // of the worker that is waited for
	for {
		w.mu.Lock()
		ticked := w.ticked
		w.mu.Unlock()
		got, err := w.try(ctx, t, claimFree, byteas(w.doubted(t.root)))
		if err != nil || len(got) > 0 {
			return err
		}
		began := time.Now()
		if got, err = w.s.query(ctx, readClaim, text(t.root)); err != nil {
			return err
		}
		if len(got) == 0 {
			continue // it is free now
		}
		h := w.holderOf(began, got[0])
		if w.dead(h.id, h.beat) {
			if got, err = w.try(ctx, t, claimDead, bytea([]byte(h.id)), long(h.beat)); err != nil || len(got) > 0 {
				return err
			}
			continue
		}
		if !waits && h.quiet < w.lease/2 || waits && h.beat != beat {
			return live(t.root, h.name)
		}
		waits, beat = true, h.beat
		select {
		case <-ticked:
		case <-w.s.life.Done():
			return context.Cause(w.s.life)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// try performs a statement that claims. Where it failed, whether it did is not known.
func (w *worker) try(ctx context.Context, t *tree, sql string, more ...param) (rows, error) {
	got, err := w.s.query(ctx, sql, append([]param{text(t.root), bytea(t.token()), bytea(w.s.by)}, more...)...)
	if err != nil {
		w.mu.Lock()
		w.doubts = append(w.doubts, doubt{t.root, t.token(), time.Now()})
		w.mu.Unlock()
	}
	return got, err
}

// doubted are the tokens by which this process may have claimed a tree.
func (w *worker) doubted(root string) (tokens [][]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.doubts {
		if x.root == root {
			tokens = append(tokens, x.token)
		}
	}
	return tokens
}

// settleDoubts releases what this process may have claimed and does not want, by the connection of beats.
func (w *worker) settleDoubts(ctx context.Context) error {
	w.mu.Lock()
	var names []string
	var tokens [][]byte
	for _, x := range w.doubts {
		names, tokens = append(names, x.root), append(tokens, x.token)
	}
	w.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	if _, err := w.c.query(ctx, dropClaims, texts(names), byteas(tokens)); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.doubts[:0]
	for i, x := range w.doubts {
		if i >= len(names) || time.Since(x.since) < doubtLeases*w.lease {
			kept = append(kept, x)
		}
	}
	w.doubts = kept
	return nil
}

// recheck looks which claims of this process are still its own, after others could have taken them over.
func (w *worker) recheck(ctx context.Context) error {
	w.mu.Lock()
	var roots []string
	var trees []*tree
	for root, t := range w.trees {
		if t.taken {
			trees, roots = append(trees, t), append(roots, root)
		}
	}
	w.mu.Unlock()
	if len(roots) == 0 {
		return nil
	}
	got, err := w.c.query(ctx, readTokens, texts(roots))
	if err != nil {
		return err
	}
	tokens := map[string]string{}
	for _, r := range got {
		tokens[string(r[0])] = string(r[1])
	}
	for _, t := range trees {
		if tokens[t.root] != string(t.token()) {
			w.lost(t, protocol.ErrFenced)
		}
	}
	return nil
}

// lost notes that a tree was taken over.
func (w *worker) lost(t *tree, why error) {
	t.lose(why)
	w.drop(t)
}

// taken says which worker has taken over what a fence is about.
func (s *Store) taken(f cas.Fence, by []byte) error {
	err := protocol.ErrFenced.With("", "another process drives the run now")
	ctx, cancel := context.WithTimeout(s.life, s.o.Lease/beatsPerLease)
	defer cancel()
	if by == nil {
		err = protocol.ErrFenced.With("wf resume goes on with it", "the claim on it was taken over and released")
	} else if got, asked := s.query(ctx, `select host, pid::bigint from wf.workers where id = $1`, bytea(by)); asked == nil && len(got) > 0 {
		err = protocol.ErrFenced.With("", "%s drives the run now", nameWorker(string(got[0][0]), readLong(got[0][1])))
	}
	w := s.worker
	w.mu.Lock()
	t := w.trees[protocol.RunHead(f.Root)]
	w.mu.Unlock()
	if t != nil && t.fence == f {
		w.lost(t, err)
	}
	return err
}

// Fence is what batches of the tree carry.
func (c *claim) Fence() cas.Fence {
	if c.t.fence.Root == "" {
		return cas.Fence{}
	}
	return c.t.fence
}

// Acting gives a context for what acts; see cas.Claim.
func (c *claim) Acting(ctx context.Context) (context.Context, context.CancelFunc, error) {
	w := c.w
	for {
		w.mu.Lock()
		firm, ticked := w.firm, w.ticked
		w.mu.Unlock()
		if c.t.life.Err() != nil {
			return nil, nil, fmt.Errorf("run %s: %w", c.t.fence.Root, context.Cause(c.t.life))
		}
		if firm != nil {
			acting, cancel := context.WithCancelCause(ctx)
			ends := func(of context.Context) func() bool {
				return context.AfterFunc(of, func() { cancel(context.Cause(of)) })
			}
			aged, lost := ends(firm), ends(c.t.life)
			return acting, func() {
				aged()
				lost()
				cancel(nil)
			}, nil
		}
		select {
		case <-ticked:
		case <-c.t.life.Done():
		case <-w.s.life.Done():
			return nil, nil, context.Cause(w.s.life)
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// Release gives the claim up: that on the tree with the last run of it. What cannot be released now is so with a later beat, or taken over
// once this process has ended.
func (c *claim) Release(ctx context.Context) error {
	if c.over.Swap(true) {
		return nil
	}
	defer c.w.unreserve(c.name)
	c.t.turn <- struct{}{}
	defer func() { <-c.t.turn }()
	if c.t.held--; c.t.held > 0 || c.t.life.Err() != nil {
		return nil
	}
	c.w.drop(c.t)
	ctx, cancel := context.WithTimeout(cas.Patient(ctx, nil), c.w.lease/beatsPerLease)
	defer cancel()
	_, err := c.w.s.query(ctx, dropClaims, texts([]string{c.t.root}), byteas([][]byte{c.t.token()}))
	if err != nil {
		c.w.mu.Lock()
		c.w.doubts = append(c.w.doubts, doubt{c.t.root, c.t.token(), time.Now()})
		c.w.mu.Unlock()
	}
	return err
}
