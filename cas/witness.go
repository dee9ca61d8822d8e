package cas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"wf/protocol"
)

// Witness remembers, outside of a store, which heads were seen in it. A store that is put
// back to an older copy of itself agrees with itself in everything; only what was noted
// elsewhere shows it.
type Witness struct {
	Store string          `json:"store"` // absolute path
	Heads map[string]Seen `json:"heads"` // by name
}

// Seen is where a head was.
type Seen struct {
	Head protocol.Link `json:"head"`
	Seq  protocol.Seq  `json:"seq"`
}

// Empty reports whether nothing was seen.
func (w Witness) Empty() bool { return len(w.Heads) == 0 }

// Names are the heads that were seen: that of run, with "" all.
func (w Witness) Names(run protocol.RunID) []string {
	var out []string
	for name := range w.Heads {
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

// witnessFile is the file of one store: the witness of a store that was moved is another.
func witnessFile(stateDir, store string) string {
	sum := sha256.Sum256([]byte(store))
	return filepath.Join(stateDir, "heads", hex.EncodeToString(sum[:8])+".json")
}

// LoadWitness reads what was seen in the store in dir. Nothing seen yet is an empty Witness.
// A file that does not read is an error wrapping protocol.ErrCorrupt: to ignore it would hide
// what it is there to show.
func LoadWitness(stateDir, dir string) (Witness, error) {
	store, err := filepath.Abs(dir)
	if err != nil {
		return Witness{}, fmt.Errorf("last seen heads of %s: %w", dir, err)
	}
	w := Witness{Store: store, Heads: map[string]Seen{}}
	path := witnessFile(stateDir, store)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
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
	return w, nil
}

// See notes heads, for the next verification. Call it with the heads of a clean report or of
// one's own commits. Others may note theirs at the same time: the file is locked, read again,
// and replaced whole. A head goes back only when its run was forgotten with Forget.
func See(ctx context.Context, stateDir, dir string, heads []Head) error {
	return changeWitness(ctx, stateDir, dir, func(w *Witness) bool {
		changed := false
		for _, h := range heads {
			if old, ok := w.Heads[h.Name]; ok && (old.Seq > h.Seq || old.Head == h.Link) {
				continue
			}
			w.Heads[h.Name] = Seen{Head: h.Link, Seq: h.Seq}
			changed = true
		}
		return changed
	})
}

// Forget drops what was seen of heads, for example of a run that was deleted on purpose.
func Forget(ctx context.Context, stateDir, dir string, names []string) error {
	return changeWitness(ctx, stateDir, dir, func(w *Witness) bool {
		before := len(w.Heads)
		for _, n := range names {
			delete(w.Heads, n)
		}
		return len(w.Heads) != before
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
	done  bool // err is set
	err   error
}

// witnessQueues are those of this process, by path.
var witnessQueues sync.Map

// changeWitness changes the file, together with others that want to.
func changeWitness(ctx context.Context, stateDir, dir string, change func(*Witness) bool) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("last seen heads of %s: %w", dir, err)
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	found, _ := witnessQueues.LoadOrStore(witnessFile(stateDir, path), &witnessQueue{})
	q := found.(*witnessQueue)
	mine := &witnessChange{apply: change}
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
	err = rewriteWitness(stateDir, dir, func(w *Witness) bool {
		changed := false
		for _, c := range all {
			changed = c.apply(w) || changed
		}
		return changed
	})
	for _, c := range all {
		c.done, c.err = true, err
	}
	return err
}

func rewriteWitness(stateDir, dir string, change func(*Witness) bool) (err error) {
	store, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("last seen heads of %s: %w", dir, err)
	}
	path := witnessFile(stateDir, store)
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
	w, err := LoadWitness(stateDir, dir)
	if err != nil || !change(&w) {
		return err
	}
	raw, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return replaceFile(path, append(raw, '\n'))
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
