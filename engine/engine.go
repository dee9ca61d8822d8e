package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

// Engine ties a store to what performs the steps. The fields are set once, before use; the
// methods are safe for concurrent use.
type Engine struct {
	Store      Store
	Performers map[protocol.Action]roles.Performer // sub-workflows are performed by the engine itself

	Version  string           // of the binary, recorded in run_started
	Now      func() time.Time // default time.Now
	Parallel int              // visits of one run performed at once; default 64
	// Patience is how long Drive stays for a timer or a wait with a due time; default 1 minute,
	// negative for not at all. A retry's delay is always waited for.
	Patience time.Duration
	// Watch is called with everything that happens, in order for each run, before the next
	// thing does: it must not block. nil is allowed.
	Watch func(api.Update)

	// Warn is called with what went wrong without harm to any run: something derived that could not be
	// kept. It must not block; nil is allowed.
	Warn func(error)

	// Over is called before the end of a run is written, for what commands keep while it goes on, and may be called
	// again; nil is allowed.
	Over func(protocol.RunID)

	// Price is what the tokens of calls to one model cost, in pico-dollars (10⁻¹² $), or nil
	// where that is not known. nil is that nothing is known; limits.cost_usd is then never
	// reached.
	Price func(protocol.Usage) *int64

	// Admit is asked before anything is written: when a run begins, is forked, and each time
	// that it is driven. Its error is given back, and nothing happens. Sub-workflows are not
	// asked for on their own. nil admits all.
	Admit func(Candidate) error

	// ConfineAll confines the commands of run roles in runs without an agent too, unless a role says
	// sandbox: off.
	ConfineAll bool

	// Pins tell the runs of this user from those that came from elsewhere, which are looked at,
	// cancelled and forked, but neither driven nor answered: protocol.ErrForeign. nil takes all for
	// the user's own.
	Pins *cas.Pins

	// Copies is the directory for the copies of the workspace that visits have for themselves, outside of every workspace and
	// repository; "" refuses such visits.
	Copies string

	// Seen keeps what was seen of workspaces between processes; nil keeps it in memory alone.
	Seen SeenFiles

	// Scratch is where visits whose results are reused have copies of their files; "" is a directory of the user's cache.
	Scratch string

	// Machine names the machine that this process is on, in a store of several: the runs that are begun here work in its files, and
	// are driven on it alone. "" is for a store of one machine, or of several with the same files.
	Machine string

	// Has is what this process has that roles may need, sorted: see protocol.ParseHas.
	Has []string

	lib    library
	areas  areas
	pasts  pasts
	stays  stays
	sights sights
	rolls  rolls
	sweep  sync.Once // of Scratch

	unknownOrigin sync.Once // Foreign has warned
}

// Cost is what all model calls of a run cost so far, in pico-dollars. It is nil where a price
// is not known; least is then what the others cost. Calls of which no provider reported anything,
// most of which failed, are left out, unless there are no others.
func (e *Engine) Cost(t rules.Totals) (cost *int64, least int64) {
	known, reported := true, t.Calls == 0
	for model, tokens := range t.Models {
		if tokens.Unreported == tokens.Calls {
			continue
		}
		reported = true
		var c *int64
		if e.Price != nil {
			c = e.Price(tokens.Usage(model))
		}
		if c == nil {
			known = false
			continue
		}
		least += *c
	}
	if known && reported {
		cost = &least
	}
	return cost, least
}

// Launch says what to run.
type Launch struct {
	Program *lang.Program
	Source  []byte        // the YAML as it was read
	Inputs  protocol.JSON // as Program.Inputs returned them

	Title, Description, Type, Scope  string
	Tags                             []string
	CreatedBy, TargetUser, RequestID string
	ClaimedBy                        string // who a client says that CreatedBy is; nothing follows from it

	Workspace string              // absolute
	Place     string              // directory in which it was started, absolute; "" is Workspace
	File      string              // path of the YAML, absolute
	Models    map[string][]string // override of the models by role, "" is every role
	// Context overrides how the agents see their past; "" is as their roles say.
	Context protocol.ContextMode
	// AllowSecretInputs names the inputs that may hold a secret, which then is stored, shown and sent.
	AllowSecretInputs []string
	// CausedBy is the notification that starts the run, if one does: a row of protocol.MaxCausedBy is the longest.
	CausedBy *protocol.CausedBy

	// Cache is what the run does about results that can be reused: "" reuses them, protocol.CacheOff none, and
	// protocol.CacheOffline performs nothing that could have been reused.
	Cache string
	// Trial and Origin are as in protocol.RunStarted.
	Trial  string
	Origin protocol.RunID

	// Trigger is what begins the run; nil is a person or a client.
	Trigger *protocol.Trigger

	// Set for sub-workflows.
	run     protocol.RunID
	parent  *protocol.ParentRun
	sources map[string]protocol.Link // of its own definition and of others, by definition
}

// sourcesOf stores the YAML texts of the sub-workflows of a program: their canonical definitions
// do not say in which order things were written.
func sourcesOf(p *lang.Program) (map[string]protocol.Link, []cas.Block) {
	var blocks []cas.Block
	out := map[string]protocol.Link{}
	for def, text := range p.Sources() {
		link, parts := cas.Payload(text)
		out[def.String()], blocks = link, append(blocks, parts...)
	}
	return out, blocks
}

// startBlocks is a Start with the blocks that it leads to.
type startBlocks struct {
	start, def protocol.Link
	blocks     []cas.Block
}

// startOf makes the Start of a program and its inputs; st says what else is in it.
func startOf(p *lang.Program, inputs protocol.JSON, st protocol.Start) (startBlocks, error) {
	blocks, err := p.AllBlocks()
	if err != nil {
		return startBlocks{}, err
	}
	def, err := p.Block()
	if err != nil {
		return startBlocks{}, err
	}
	if err := protocol.CheckPayload("inputs", len(inputs)); err != nil {
		return startBlocks{}, fmt.Errorf("%w: %w", protocol.ErrInputs, err)
	}
	in, parts := cas.Payload(inputs)
	st.Kind, st.V, st.Workflow, st.Inputs, st.Semantics = protocol.KindStart, protocol.RecordVersion, def.Link, in, rules.SemanticsOf(p.Workflow)
	start, err := cas.Encode(st)
	return startBlocks{start.Link, def.Link, append(slices.Concat(blocks, parts), start)}, err
}

func (e *Engine) warn(err error) {
	if e.Warn != nil {
		e.Warn(err)
	}
}

func (e *Engine) now() int64 {
	if e.Now != nil {
		return e.Now().UnixMicro()
	}
	return time.Now().UnixMicro()
}

// notify passes the watcher events that this process wrote; of says what run they are of.
func (e *Engine) notify(of api.Update, entries []protocol.Entry, drafts []cas.Draft) {
	if e.Watch == nil {
		return
	}
	of.Wrote = true
	for i := range entries {
		of.Entry, of.Data, of.Step = &entries[i], drafts[i].Data, drafts[i].Step
		e.Watch(of)
	}
}

// aboutRun is what all updates of a run that is in hand have in common.
func aboutRun(run protocol.RunID, s *rules.State) api.Update {
	return api.Update{Run: run, Workflow: s.Program().Workflow, Parent: s.Info.Parent.ID(), Started: s.Info.Started}
}

// State folds a run, from its snapshot where that is still good. A snapshot that cannot be read
// is as good as none. Where much had to be folded another one is kept for the next time.
func (e *Engine) State(ctx context.Context, run protocol.RunID) (*rules.State, error) {
	s, _, err := e.state(ctx, run)
	return s, err
}

// stored is the snapshot of a run in the store; seq is 0 where there is none.
type stored struct {
	seq   protocol.Seq
	bytes int
}

// state is State, with the snapshot that the store has of it.
func (e *Engine) state(ctx context.Context, run protocol.RunID) (*rules.State, stored, error) {
	from := e.records(ctx)
	var head protocol.Link
	after := func(seq protocol.Seq, prev protocol.Link) iter.Seq2[protocol.Entry, error] {
		return func(yield func(protocol.Entry, error) bool) {
			for x, err := range e.Store.After(ctx, run, seq) {
				if err == nil && x.Seq == seq+1 && x.Prev != prev {
					err = fmt.Errorf("event %d does not follow %s: %w", x.Seq, prev.Short(), protocol.ErrHeadMoved)
				}
				head = x.CID
				if !yield(x, err) {
					return
				}
			}
		}
	}
	if d, ok, err := e.Store.Derived(ctx, snapshotKey(run)); err == nil && ok {
		if s, err := restore(from, d.Data); err == nil && e.onBranch(ctx, run, d.Head, s.Seq) {
			snap := stored{s.Seq, len(d.Data)}
			if err := s.FoldMore(after(s.Seq, d.Head)); err == nil {
				return s, e.keep(ctx, run, s, head, snap), nil
			}
		}
	}
	s, err := rules.Fold(from, after(0, protocol.Link{}))
	if err != nil {
		return nil, stored{}, fmt.Errorf("run %s: %w", run, err)
	}
	return s, e.keep(ctx, run, s, head, stored{}), nil
}

// restore reads a snapshot. An error means only that the journal has to be folded instead.
func restore(from rules.Records, data []byte) (*rules.State, error) {
	var in rules.Snapshot
	if err := cas.Decode(data, &in); err != nil {
		return nil, err
	}
	return in.Restore(from)
}

// keepEvery is how many events a look at a run folds at least to keep what they give: those of
// a run that was imported, or driven by a wf with other snapshots.
const keepEvery = 4 * snapshotEvery

// keep stores the state at head as a snapshot, if much was folded behind snap, and says which one there
// is. It is derived: a store that cannot be written loses nothing.
func (e *Engine) keep(ctx context.Context, run protocol.RunID, s *rules.State, head protocol.Link, snap stored) stored {
	behind := int(s.Seq - snap.seq)
	if behind < keepEvery || behind*eventSize < snap.bytes {
		return snap
	}
	data, err := cas.Marshal(s.Snapshot())
	if err == nil {
		err = e.Store.Commit(ctx, cas.Batch{Derived: []cas.Derived{{Key: snapshotKey(run), Head: head, Data: data}}})
	}
	switch {
	case err == nil:
		return stored{s.Seq, len(data)}
	case !errors.Is(err, protocol.ErrReadOnly) && ctx.Err() == nil:
		e.warn(fmt.Errorf("run %s: its state cannot be stored, the next look folds its journal again: %w", run, err))
	}
	return snap
}

// onBranch reports whether head, the newest event of a snapshot, is still event seq of run.
func (e *Engine) onBranch(ctx context.Context, run protocol.RunID, head protocol.Link, seq protocol.Seq) bool {
	x, err := e.entry(ctx, run, seq)
	return err == nil && x.Seq == seq && x.CID == head
}

func (e *Engine) reader(ctx context.Context) Reader {
	return func(l protocol.Link) ([]byte, error) { return e.Store.Block(ctx, l) }
}

func snapshotKey(run protocol.RunID) string { return cas.StateKey(run) }

// RequestRun is the run that Begin makes of a request id in a store in a directory.
func RequestRun(requestID string) protocol.RunID { return requestRun(requestID, cas.IDLength) }

// LongRequestRun is the run that Begin makes of a request id in a store that several machines share.
func LongRequestRun(requestID string) protocol.RunID { return requestRun(requestID, cas.LongID) }

// RequestRun is the run that Begin makes of a request id.
func (e *Engine) RequestRun(requestID string) protocol.RunID {
	return requestRun(requestID, e.Store.IDLength())
}

// RunOfRequest is the run that a request id made, or would make. A store with long ids may have taken in a run that it made in a directory.
func (e *Engine) RunOfRequest(ctx context.Context, requestID string) (protocol.RunID, error) {
	run := e.RequestRun(requestID)
	short := RequestRun(requestID)
	if short == run {
		return run, nil
	}
	h, err := e.Store.Head(ctx, protocol.RunHead(short))
	if err == nil && !h.Link.Defined() {
		h, err = e.Store.Head(ctx, protocol.DeletedHead(short))
	}
	if err == nil && h.Link.Defined() {
		run = short
	}
	return run, err
}

// MadeBy reports whether a run is the one that a request id makes, in a store of whatever kind.
func MadeBy(requestID string, run protocol.RunID) bool {
	return (len(run) == cas.IDLength || len(run) == cas.LongID) && run == requestRun(requestID, len(run))
}

func requestRun(requestID string, n int) protocol.RunID { return nameFrom("request\x00"+requestID, n) }

// runAlphabet has no letters that are taken for digits (Crockford).
const runAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// newRunID is n random characters of 5 bits each.
func newRunID(n int) protocol.RunID {
	id := make([]byte, n)
	rand.Read(id) // never fails
	for i, b := range id {
		id[i] = runAlphabet[int(b)%len(runAlphabet)] // 32 letters: each is as likely
	}
	return protocol.RunID(id)
}

// nameFrom is the run id of n characters that a seed always gives; a shorter one is the beginning of a longer one.
func nameFrom(seed string, n int) protocol.RunID {
	sum := sha256.Sum256([]byte(seed))
	return protocol.RunID(base32.NewEncoding(runAlphabet).EncodeToString(sum[:])[:n])
}
