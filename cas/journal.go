package cas

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"wf/protocol"
)

// Draft is an event before it has a place: what happened, and in which step ("" for the run).
type Draft struct {
	Step string
	Data protocol.Data
}

// Journal appends to the events of one run. Several may be open on a run; the one that comes
// late is told so by ErrHeadMoved. It is safe for concurrent use.
type Journal struct {
	s    *Store
	run  protocol.RunID
	mu   sync.Mutex
	head protocol.Link
	seq  protocol.Seq
}

// Journal opens the journal of a run at its head; a run that does not exist yet begins with
// its first Append.
func (s *Store) Journal(ctx context.Context, run protocol.RunID) (*Journal, error) {
	if err := checkRunID(run); err != nil {
		return nil, err
	}
	h, err := s.Head(ctx, protocol.RunHead(run))
	if err != nil {
		return nil, fmt.Errorf("journal of %s: %w", run, err)
	}
	return &Journal{s: s, run: run, head: h.Link, seq: h.Seq}, nil
}

// Run is the run the journal is of.
func (j *Journal) Run() protocol.RunID { return j.run }

// Head is the newest event the journal knows of; null and 0 before the first.
func (j *Journal) Head() (protocol.Link, protocol.Seq) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.head, j.seq
}

// Append makes events of drafts and commits them with blocks and derived values, all or
// nothing. now is unix µs. Texts over protocol.InlineMax become blocks of their own; the
// drafts are not changed. When it returns, all of it is on disk.
//
// ErrHeadMoved means that another process appended: see Catchup. Other errors are those of
// Store.Commit, and ErrInvalidBlock for data that cannot be written.
func (j *Journal) Append(ctx context.Context, now int64, drafts []Draft, blocks []Block, derived ...Derived) ([]protocol.Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.append(ctx, now, drafts, blocks, derived, "")
}

func (j *Journal) append(ctx context.Context, now int64, drafts []Draft, blocks []Block, derived []Derived, base protocol.RunID) ([]protocol.Entry, error) {
	if len(drafts) == 0 {
		return nil, j.commit(ctx, Batch{Blocks: blocks, Derived: derived})
	}
	old := j.head
	if base != "" {
		old = protocol.Link{} // the new head does not exist yet
	}
	move := Move{Name: protocol.RunHead(j.run), Old: old, TS: now, Base: base}
	entries := make([]protocol.Entry, len(drafts))
	all := append(make([]Block, 0, len(blocks)+len(drafts)+1), blocks...)
	prev, seq := j.head, j.seq
	for i, d := range drafts {
		seq++
		e := protocol.Event{Kind: protocol.KindEvent, V: protocol.RecordVersion, Prev: prev, Seq: seq, TS: now}
		if d.Step != "" {
			step := d.Step
			e.Step = &step
		}
		spilled, err := encodeData(&e, d.Data)
		if err != nil {
			return nil, fmt.Errorf("event %d of run %s: %w", seq, j.run, err)
		}
		b, err := Encode(e)
		if err != nil {
			return nil, fmt.Errorf("event %d of run %s, %s: %w", seq, j.run, e.Type, err)
		}
		all = append(append(all, spilled...), b)
		prev = b.Link
		entries[i] = protocol.Entry{Event: e, CID: b.Link, Raw: b.Data}
		move.Events = append(move.Events, EventRef{seq, b.Link})
	}
	move.New = prev
	for i := range derived {
		if !derived[i].Head.Defined() {
			derived[i].Head = prev // known only now
		}
	}
	if err := j.commit(ctx, Batch{Blocks: all, Moves: []Move{move}, Derived: derived}); err != nil {
		return nil, err
	}
	j.head, j.seq = prev, seq
	return entries, nil
}

func (j *Journal) commit(ctx context.Context, b Batch) error {
	if err := j.s.Commit(ctx, b); err != nil {
		return fmt.Errorf("journal of run %s: %w", j.run, err)
	}
	return nil
}

// Catchup gives the events that others appended since, and moves the journal to the head. An
// error wrapping ErrHeadMoved means that the head now stands on another history.
func (j *Journal) Catchup(ctx context.Context) ([]protocol.Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h, err := j.s.Head(ctx, protocol.RunHead(j.run))
	if err != nil {
		return nil, fmt.Errorf("journal of run %s: %w", j.run, err)
	}
	if h.Link == j.head {
		return nil, nil
	}
	moved := func() error {
		return fmt.Errorf("journal of run %s: its head went from event %d to another history: %w", j.run, j.seq, protocol.ErrHeadMoved)
	}
	if h.Seq <= j.seq {
		return nil, moved()
	}
	var out []protocol.Entry
	for e, err := range j.s.After(ctx, j.run, j.seq) {
		if err != nil {
			return nil, err
		}
		if len(out) == 0 && e.Prev != j.head {
			return nil, moved()
		}
		out = append(out, e)
	}
	if n := len(out); n > 0 {
		j.head, j.seq = out[n-1].CID, out[n-1].Seq
	}
	return out, nil
}

// Fork begins the journal of newRun on the event at, with draft as its first own event, and
// copies nothing. ErrHeadMoved means that newRun exists already.
func (j *Journal) Fork(ctx context.Context, now int64, newRun protocol.RunID, at protocol.Entry, draft Draft, blocks []Block) (*Journal, error) {
	if err := checkRunID(newRun); err != nil {
		return nil, err
	}
	f := &Journal{s: j.s, run: newRun, head: at.CID, seq: at.Seq}
	if _, err := f.append(ctx, now, []Draft{draft}, blocks, nil, j.run); err != nil {
		return nil, fmt.Errorf("fork run %s at event %d: %w", j.run, at.Seq, err)
	}
	return f, nil
}

// encodeData fills in type and data of an event; long texts become blocks.
func encodeData(e *protocol.Event, d protocol.Data) ([]Block, error) {
	if d == nil || d.EventType() == protocol.EvDelta {
		return nil, fmt.Errorf("%T is never stored: %w", d, protocol.ErrInvalidBlock)
	}
	e.Type = d.EventType()
	d, spilled := spill(d)
	if err := refuseBareCID(valueOf(d)); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Type, err)
	}
	b, err := encMode.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", e.Type, protocol.ErrInvalidBlock, err)
	}
	e.Data = cbor.RawMessage(b)
	return spilled, nil
}

// checkRunID keeps ids apart from paths and from the keys of the store.
func checkRunID(id protocol.RunID) error {
	if id == "" || len(id) > 200 || strings.ContainsAny(string(id), "/\\\x00") || strings.HasPrefix(string(id), ".") {
		return fmt.Errorf("%q is no run id: %w", id, protocol.ErrUnknownRun)
	}
	return nil
}

// LockRun makes this process the only driver of a run until unlock is called or the process
// ends, however it ends. A run that is driven already is an error wrapping
// protocol.ErrRunLive that names the process.
func (s *Store) LockRun(id protocol.RunID) (unlockRun func() error, err error) {
	if err := checkRunID(id); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.gate.dir, dirRuns)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lock run %s: %w", id, classify(err))
	}
	path := filepath.Join(dir, string(id)+".lock")
	f, err := openLock(path, false)
	if err != nil {
		return nil, fmt.Errorf("lock run %s: %w", id, classify(err))
	}
	ok, err := tryLock(f)
	if err == nil && ok {
		err = writePID(f)
	}
	switch {
	case err != nil:
		_ = f.Close()
		return nil, fmt.Errorf("lock run %s: %w", id, classify(err))
	case !ok:
		_ = f.Close()
		e := *protocol.ErrRunLive
		e.Message = fmt.Sprintf("run %s is driven by another process", id)
		if pid, known := readPID(path); known {
			e.Message = fmt.Sprintf("run %s is driven by process %d", id, pid)
		}
		return nil, &e
	}
	return sync.OnceValue(f.Close), nil
}
