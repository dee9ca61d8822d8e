package cas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"wf/files"
	"wf/protocol"
)

// PinnedHeads remembers, outside of a store, which heads were seen in it. A store that is put
// back to an older copy of itself agrees with itself in everything; only what was noted
// elsewhere shows it.
type PinnedHeads struct {
	Store string          `json:"store"` // absolute path
	Heads map[string]Seen `json:"heads"` // by name: of what this user has begun, driven or adopted
	// Found are heads of runs as a verification found them sound. They show a store that was put
	// back, and give no leave to drive anything.
	Found map[string]Seen `json:"found,omitempty"`
	// Begun are first events that this user was about to write, for each run that was not seen since.
	// There are several where processes raced, and none of them need be in the store.
	Begun map[string][]Seen `json:"begun,omitempty"`
}

// Seen is where a head was.
type Seen struct {
	Head protocol.Link `json:"head"`
	Seq  protocol.Seq  `json:"seq"`
}

// Empty reports whether nothing was seen.
func (w PinnedHeads) Empty() bool { return len(w.Heads)+len(w.Found)+len(w.Begun) == 0 }

// All are the heads of both kinds, the later one of each name.
func (w PinnedHeads) All() map[string]Seen {
	all := map[string]Seen{}
	maps.Copy(all, w.Heads)
	for name, s := range w.Found {
		if s.Seq > all[name].Seq {
			all[name] = s
		}
	}
	return all
}

// Names are the heads that were seen: that of run, with "" all.
func (w PinnedHeads) Names(run protocol.RunID) []string {
	var out []string
	for name := range w.All() {
		if run == "" || name == protocol.RunHead(run) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// StateDir is the directory of pinned heads: $XDG_STATE_HOME/wf, else ~/.local/state/wf. It is ""
// where neither is known.
func StateDir(getenv func(string) string) string {
	if d := getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "wf")
	}
	if d := getenv("HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, ".local", "state", "wf")
	}
	return ""
}

// pinnedFile is the file of one store; a store that was moved has another.
func pinnedFile(stateDir, store string) string {
	sum := sha256.Sum256([]byte(store))
	return filepath.Join(stateDir, "heads", hex.EncodeToString(sum[:8])+".json")
}

// LoadPinnedHeads reads what was seen in the store in dir. They are empty where nothing was seen yet.
// A file that does not read is an error wrapping protocol.ErrCorrupt: to ignore it would hide
// what it is there to show.
func LoadPinnedHeads(stateDir, dir string) (PinnedHeads, error) {
	store := files.Real(dir)
	w := PinnedHeads{Store: store}
	path := pinnedFile(stateDir, store)
	begun, err := readBegun(path) // first: a process that takes them into the file removes them afterwards
	if err != nil {
		return PinnedHeads{}, fmt.Errorf("last seen heads in %s: %w", begunFile(path), err)
	}
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case err == nil:
		if err = json.Unmarshal(raw, &w); err == nil && w.Store != store {
			err = fmt.Errorf("they are those of %s", w.Store)
		}
	}
	if err != nil {
		return PinnedHeads{}, fmt.Errorf("last seen heads in %s: %w: %w", path, protocol.ErrCorrupt, err)
	}
	if w.Heads == nil {
		w.Heads = map[string]Seen{}
	}
	w.begin(begun)
	return w, nil
}

// See notes heads of one's own commits: what descends from them is one's own too. Other
// processes may note theirs at the same time: the file is locked, read again, and replaced whole. A head goes back only
// when its run was forgotten with Forget.
func See(ctx context.Context, stateDir, dir string, heads []Head) error {
	return changePinned(ctx, stateDir, dir, func(w *PinnedHeads) bool {
		changed := false
		for _, h := range heads {
			if w.Begun[h.Name] != nil { // which may be of a run after the one that was seen before
				delete(w.Begun, h.Name)
				delete(w.Heads, h.Name)
				changed = true
			}
			changed = w.see(w.Heads, h) || changed
		}
		return changed
	})
}

// SeeFound notes the heads of a clean report, for the next verification. A run that came from
// elsewhere stays foreign: to look at it is no leave to drive it.
func SeeFound(ctx context.Context, stateDir, dir string, heads []Head) error {
	return changePinned(ctx, stateDir, dir, func(w *PinnedHeads) bool {
		changed := false
		for _, h := range heads {
			switch own, ok := w.Heads[h.Name]; {
			case ok && own.Seq >= h.Seq: // known already
			case strings.HasPrefix(h.Name, protocol.RunHead("")):
				if w.Found == nil {
					w.Found = map[string]Seen{}
				}
				changed = w.see(w.Found, h) || changed
			default:
				changed = w.see(w.Heads, h) || changed
			}
		}
		return changed
	})
}

// see notes a head in a map of w, unless a later one is there.
func (w *PinnedHeads) see(in map[string]Seen, h Head) bool {
	if old, ok := in[h.Name]; ok && (old.Seq > h.Seq || old.Head == h.Link) {
		return false
	}
	in[h.Name] = Seen{Head: h.Link, Seq: h.Seq}
	return true
}

// Adopt notes heads as one's own, whatever was seen of them before.
func Adopt(ctx context.Context, stateDir, dir string, heads []Head) error {
	return changePinned(ctx, stateDir, dir, func(w *PinnedHeads) bool {
		for _, h := range heads {
			w.Heads[h.Name] = Seen{Head: h.Link, Seq: h.Seq}
			delete(w.Found, h.Name)
			delete(w.Begun, h.Name)
		}
		return len(heads) > 0
	})
}

// begin takes in first events that were about to be written.
func (w *PinnedHeads) begin(heads []Head) {
	if w.Begun == nil && len(heads) > 0 {
		w.Begun = map[string][]Seen{}
	}
	for _, h := range heads {
		x := Seen{Head: h.Link, Seq: h.Seq}
		if of := w.Begun[h.Name]; !slices.Contains(of, x) {
			w.Begun[h.Name] = append(of[max(0, len(of)-mostBegun+1):], x)
		}
	}
}

// mostBegun is how many processes may race to begin one run.
const mostBegun = 16

// Disown takes runs for foreign from now on: other programs wrote what comes next in them.
func Disown(ctx context.Context, stateDir, dir string, runs []protocol.RunID) error {
	return changePinned(ctx, stateDir, dir, func(w *PinnedHeads) bool {
		changed := false
		for _, run := range runs {
			name := protocol.RunHead(run)
			old, own := w.Heads[name]
			if begun := w.Begun[name]; len(begun) > 0 {
				old, own = begun[len(begun)-1], true
			}
			if !own {
				continue
			}
			if w.Found == nil {
				w.Found = map[string]Seen{}
			}
			if old.Seq > w.Found[name].Seq {
				w.Found[name] = old
			}
			delete(w.Heads, name)
			delete(w.Begun, name)
			changed = true
		}
		return changed
	})
}

// Forget drops what was seen of heads, for example of a run that was deleted on purpose.
func Forget(ctx context.Context, stateDir, dir string, names []string) error {
	return changePinned(ctx, stateDir, dir, func(w *PinnedHeads) bool {
		before := len(w.Heads) + len(w.Found)
		for _, n := range names {
			delete(w.Heads, n)
			delete(w.Found, n)
			delete(w.Begun, n)
		}
		return len(w.Heads)+len(w.Found) != before
	})
}

// changeQueue takes the changes of one file together: of many goroutines one waits for the lock of
// the file, and so one thread, and writes what the others want too.
type changeQueue struct {
	turn sync.Mutex

	mu   sync.Mutex
	wait []*pinChange
}

type pinChange struct {
	apply func(*PinnedHeads) bool
	begun []Head // instead of apply: they are only added, and the file is not written again
	done  bool   // err is set
	err   error
}

// changeQueues are those of this process, by path.
var changeQueues sync.Map

// changePinned changes the file, together with others that want to.
func changePinned(ctx context.Context, stateDir, dir string, change func(*PinnedHeads) bool) error {
	return queueChange(ctx, stateDir, dir, &pinChange{apply: change})
}

func queueChange(ctx context.Context, stateDir, dir string, mine *pinChange) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	store := files.Real(dir)
	path := pinnedFile(stateDir, store)
	found, _ := changeQueues.LoadOrStore(path, &changeQueue{})
	q := found.(*changeQueue)
	q.mu.Lock()
	q.wait = append(q.wait, mine)
	q.mu.Unlock()
	q.turn.Lock()
	defer q.turn.Unlock()
	if mine.done {
		return mine.err
	}
	q.mu.Lock()
	all := q.wait
	q.wait = nil
	q.mu.Unlock()
	var err error
	if slices.ContainsFunc(all, func(c *pinChange) bool { return c.apply != nil }) {
		err = rewritePinned(stateDir, store, func(w *PinnedHeads) bool {
			changed := false
			for _, c := range all {
				if c.apply == nil {
					w.begin(c.begun)
					changed = true
				} else {
					changed = c.apply(w) || changed
				}
			}
			return changed
		})
	} else {
		err = appendBegun(path, all)
	}
	for _, c := range all {
		c.done, c.err = true, err
	}
	return err
}

// rewritePinned replaces the file of a store, in the directory store, with what change makes of it.
func rewritePinned(stateDir, store string, change func(*PinnedHeads) bool) error {
	path := pinnedFile(stateDir, store)
	return lockedPinned(path, func() error {
		w, err := LoadPinnedHeads(stateDir, store)
		if err != nil || !change(&w) {
			return err
		}
		raw, err := json.Marshal(w)
		if err != nil {
			return err
		}
		if err := files.Replace(path, append(raw, '\n')); err != nil {
			return err
		}
		return removeIfThere(begunFile(path))
	})
}

// lockedPinned calls f while no other process writes the file at path.
func lockedPinned(path string, f func() error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("last seen heads in %s: %w", path, err)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock, err := openLock(path+".lock", false)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lockWait(lock, true); err != nil { // held for one small file
		return err
	}
	return f()
}
