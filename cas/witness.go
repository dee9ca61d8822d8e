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

	"wf/protocol"
)

// Witness remembers, outside of a store, which heads were seen in it. A store that is put
// back to an older copy of itself agrees with itself in everything; only what was noted
// elsewhere shows it.
type Witness struct {
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
func (w Witness) Empty() bool { return len(w.Heads)+len(w.Found)+len(w.Begun) == 0 }

// All are the heads of both kinds, the later one of each name.
func (w Witness) All() map[string]Seen {
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
func (w Witness) Names(run protocol.RunID) []string {
	var out []string
	for name := range w.All() {
		if run == "" || name == protocol.RunHead(run) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// StateDir is where witnesses are kept: $XDG_STATE_HOME/wf, else ~/.local/state/wf. It is ""
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

// storePath is the path of a store by which it is remembered: the same through a symbolic link.
func storePath(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("last seen heads of %s: %w", dir, err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil { // a store that is not there has the path that was named
		path = real
	}
	return path, nil
}

// witnessFile is the file of one store: the witness of a store that was moved is another.
func witnessFile(stateDir, store string) string {
	sum := sha256.Sum256([]byte(store))
	return filepath.Join(stateDir, "heads", hex.EncodeToString(sum[:8])+".json")
}

// LoadWitness reads what was seen in the store in dir. Nothing seen yet is an empty Witness.
// A file that does not read is an error wrapping protocol.ErrCorrupt: to ignore it would hide
// what it is there to show.
func LoadWitness(stateDir, dir string) (Witness, error) {
	store, err := storePath(dir)
	if err != nil {
		return Witness{}, err
	}
	w := Witness{Store: store, Heads: map[string]Seen{}}
	path := witnessFile(stateDir, store)
	begun, err := readBegun(path) // first: who takes them into the file removes them afterwards
	if err != nil {
		return Witness{}, fmt.Errorf("last seen heads in %s: %w", begunFile(path), err)
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		w.begin(begun)
		return w, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &w)
	}
	if err == nil && w.Store != store {
		err = fmt.Errorf("they are those of %s", w.Store)
	}
	if err != nil {
		return Witness{}, fmt.Errorf("last seen heads in %s: %w: %w", path, protocol.ErrCorrupt, err)
	}
	if w.Heads == nil {
		w.Heads = map[string]Seen{}
	}
	w.begin(begun)
	return w, nil
}

// See notes heads of one's own commits: what descends from them is one's own too. Others may note
// theirs at the same time: the file is locked, read again, and replaced whole. A head goes back only
// when its run was forgotten with Forget.
func See(ctx context.Context, stateDir, dir string, heads []Head) error {
	return changeWitness(ctx, stateDir, dir, func(w *Witness) bool {
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
	return changeWitness(ctx, stateDir, dir, func(w *Witness) bool {
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
func (w *Witness) see(in map[string]Seen, h Head) bool {
	if old, ok := in[h.Name]; ok && (old.Seq > h.Seq || old.Head == h.Link) {
		return false
	}
	in[h.Name] = Seen{Head: h.Link, Seq: h.Seq}
	return true
}

// Adopt notes heads as one's own, whatever was seen of them before.
func Adopt(ctx context.Context, stateDir, dir string, heads []Head) error {
	return changeWitness(ctx, stateDir, dir, func(w *Witness) bool {
		for _, h := range heads {
			w.Heads[h.Name] = Seen{Head: h.Link, Seq: h.Seq}
			delete(w.Found, h.Name)
			delete(w.Begun, h.Name)
		}
		return len(heads) > 0
	})
}

// begin takes in first events that were about to be written.
func (w *Witness) begin(heads []Head) {
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

// Disown takes runs for foreign from now on: others wrote what comes next in them.
func Disown(ctx context.Context, stateDir, dir string, runs []protocol.RunID) error {
	return changeWitness(ctx, stateDir, dir, func(w *Witness) bool {
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
	return changeWitness(ctx, stateDir, dir, func(w *Witness) bool {
		before := len(w.Heads) + len(w.Found)
		for _, n := range names {
			delete(w.Heads, n)
			delete(w.Found, n)
			delete(w.Begun, n)
		}
		return len(w.Heads)+len(w.Found) != before
	})
}

// witnessQueue takes the changes of one file together: of many goroutines one waits for the lock of
// the file, and so one thread, and writes what the others want too.
type witnessQueue struct {
	turn sync.Mutex

	mu   sync.Mutex
	wait []*witnessChange
}

type witnessChange struct {
	apply func(*Witness) bool
	begun []Head // instead of apply: they are only added, and the file is not written again
	done  bool   // err is set
	err   error
}

// witnessQueues are those of this process, by path.
var witnessQueues sync.Map

// changeWitness changes the file, together with others that want to.
func changeWitness(ctx context.Context, stateDir, dir string, change func(*Witness) bool) error {
	return queueWitness(ctx, stateDir, dir, &witnessChange{apply: change})
}

func queueWitness(ctx context.Context, stateDir, dir string, mine *witnessChange) error {
	path, err := storePath(dir)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	found, _ := witnessQueues.LoadOrStore(witnessFile(stateDir, path), &witnessQueue{})
	q := found.(*witnessQueue)
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
	if slices.ContainsFunc(all, func(c *witnessChange) bool { return c.apply != nil }) {
		err = rewriteWitness(stateDir, path, func(w *Witness) bool {
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
		err = appendBegun(witnessFile(stateDir, path), all)
	}
	for _, c := range all {
		c.done, c.err = true, err
	}
	return err
}

// rewriteWitness replaces the file of a store, by its storePath, with what change makes of it.
func rewriteWitness(stateDir, store string, change func(*Witness) bool) error {
	path := witnessFile(stateDir, store)
	return lockedWitness(path, func() error {
		w, err := LoadWitness(stateDir, store)
		if err != nil || !change(&w) {
			return err
		}
		raw, err := json.Marshal(w)
		if err != nil {
			return err
		}
		if err := replaceFile(path, append(raw, '\n')); err != nil {
			return err
		}
		return removeIfThere(begunFile(path))
	})
}

// lockedWitness calls f while no other process writes the file at path.
func lockedWitness(path string, f func() error) (err error) {
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

// replaceFile writes a file whole or not at all.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}
