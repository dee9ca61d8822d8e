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
	Store string          `json:"store"` // absolute path, or the name of one that is not in a directory
	Heads map[string]Seen `json:"heads"` // by name: of what this user has begun, driven or adopted
	// Found are heads of runs as a verification found them sound. They show a store that was put
	// back, and give no leave to drive anything.
	Found map[string]Seen `json:"found,omitempty"`
	// Begun are first events that this user was about to write, for each run that was not seen since.
	// There are several where processes raced, and none of them need be in the store.
	Begun map[string][]Seen `json:"begun,omitempty"`

	changed bool // since they were read
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
	names := slices.Sorted(maps.Keys(w.All()))
	return slices.DeleteFunc(names, func(name string) bool { return run != "" && name != protocol.RunHead(run) })
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

// database begins the names of stores that are not in a directory.
const database = "postgres:"

// inDatabase reports whether the name of a store, its Dir, is that of one in a database.
func inDatabase(store string) bool { return strings.HasPrefix(store, database) }

// storeName is the name under which a store is noted: its path without links, or that of one that has none.
func storeName(dir string) string {
	if inDatabase(dir) {
		return dir
	}
	return files.Real(dir)
}

// LoadPinnedHeads reads what was seen in the store in dir. They are empty where nothing was seen yet.
// A file that does not read is an error wrapping protocol.ErrCorrupt: to ignore it would hide
// what it is there to show.
func LoadPinnedHeads(stateDir, dir string) (PinnedHeads, error) {
	store := storeName(dir)
	w := PinnedHeads{Store: store, Heads: map[string]Seen{}, Found: map[string]Seen{}, Begun: map[string][]Seen{}}
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
		} else if err == nil && (w.Heads == nil || w.Found == nil || w.Begun == nil) {
			err = errors.New("a list of them is null")
		}
	}
	if err != nil {
		return PinnedHeads{}, fmt.Errorf("last seen heads in %s: %w: %w", path, protocol.ErrCorrupt, err)
	}
	w.begin(begun)
	w.changed = false // they are kept already
	return w, nil
}

// See notes heads of one's own commits: what descends from them is one's own too. Other
// processes may note theirs at the same time: the file is locked, read again, and replaced whole. A head goes back only
// when its run was forgotten with Forget.
func See(ctx context.Context, stateDir, dir string, heads []Head) error {
	return changePinned(ctx, stateDir, dir, func(w *PinnedHeads) {
		for _, h := range heads {
			if w.Begun[h.Name] != nil { // which may be of a run after the one that was seen before
				delete(w.Begun, h.Name)
				delete(w.Heads, h.Name)
			}
			w.see(w.Heads, h)
		}
	})
}

// SeeFound notes the heads of a clean report, for the next verification. A run that came from
// elsewhere stays foreign: to look at it is no leave to drive it.
func SeeFound(ctx context.Context, stateDir, dir string, heads []Head) error {
	return changePinned(ctx, stateDir, dir, func(w *PinnedHeads) {
		for _, h := range heads {
			switch own, ok := w.Heads[h.Name]; {
			case ok && own.Seq >= h.Seq: // known already
			case strings.HasPrefix(h.Name, protocol.RunHead("")):
				w.see(w.Found, h)
			default:
				w.see(w.Heads, h)
			}
		}
	})
}

// see notes a head in a map of w, unless a later one is there.
func (w *PinnedHeads) see(in map[string]Seen, h Head) {
	if old, ok := in[h.Name]; !ok || old.Seq <= h.Seq && old.Head != h.Link {
		in[h.Name] = Seen{Head: h.Link, Seq: h.Seq}
		w.changed = true
	}
}

// Adopt notes heads as one's own, whatever was seen of them before.
func Adopt(ctx context.Context, stateDir, dir string, heads []Head) error {
	return changePinned(ctx, stateDir, dir, func(w *PinnedHeads) {
		for _, h := range heads {
			w.forget(h.Name)
			w.see(w.Heads, h)
		}
	})
}

// begin takes in first events that were about to be written.
func (w *PinnedHeads) begin(heads []Head) {
	for _, h := range heads {
		x := Seen{Head: h.Link, Seq: h.Seq}
		if of := w.Begun[h.Name]; !slices.Contains(of, x) {
			w.Begun[h.Name] = append(of[max(0, len(of)-mostBegun+1):], x)
		}
		w.changed = true
	}
}

// mostBegun is how many processes may race to begin one run.
const mostBegun = 16

// disown takes a run for foreign.
func (w *PinnedHeads) disown(run protocol.RunID) {
	name := protocol.RunHead(run)
	old, own := w.Heads[name]
	if begun := w.Begun[name]; len(begun) > 0 {
		old, own = begun[len(begun)-1], true
	}
	if !own {
		return
	}
	if found := w.Found[name]; found.Seq >= old.Seq && found.Head.Defined() {
		old = found
	}
	w.forget(name)
	w.Found[name] = old
}

// Forget drops what was seen of heads, for example of a run that was deleted on purpose.
func Forget(ctx context.Context, stateDir, dir string, names []string) error {
	return changePinned(ctx, stateDir, dir, func(w *PinnedHeads) {
		for _, n := range names {
			w.forget(n)
		}
	})
}

func (w *PinnedHeads) forget(name string) {
	w.changed = w.changed || w.Heads[name].Head.Defined() || w.Found[name].Head.Defined() || w.Begun[name] != nil
	delete(w.Heads, name)
	delete(w.Found, name)
	delete(w.Begun, name)
}

// changeQueue takes the changes of one file together: of many goroutines one waits for the lock of
// the file, and so one thread, and writes what the others want too.
type changeQueue struct {
	turn sync.Mutex

	mu   sync.Mutex
	wait []*pinChange
}

type pinChange struct {
	apply func(*PinnedHeads)
	begun []Head // where apply does no more than add them: the file is then not written again
	done  bool   // err is set
	err   error
}

// changeQueues are those of this process, by path.
var changeQueues sync.Map

// changePinned changes the file, together with others that want to.
func changePinned(ctx context.Context, stateDir, dir string, change func(*PinnedHeads), begun ...Head) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	mine := &pinChange{apply: change, begun: begun}
	store := storeName(dir)
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
	if slices.ContainsFunc(all, func(c *pinChange) bool { return c.begun == nil }) {
		err = rewritePinned(stateDir, store, all)
	} else {
		err = appendBegun(path, all)
	}
	for _, c := range all {
		c.done, c.err = true, err
	}
	return err
}

// rewritePinned replaces the file of a store, in the directory store, where a change is one.
func rewritePinned(stateDir, store string, all []*pinChange) error {
	path := pinnedFile(stateDir, store)
	return lockedPinned(path, func() error {
		w, err := LoadPinnedHeads(stateDir, store)
		if err != nil {
			return err
		}
		for _, c := range all {
			c.apply(&w)
		}
		if !w.changed {
			return nil
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
	defer func() { _ = files.FreeLock(lock) }()         // nothing was written
	if err := files.WaitLock(lock, false); err != nil { // held for one small file
		return err
	}
	return f()
}
