package hook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"wf/files"
	"wf/protocol"
)

// Each process that takes events of a store has a directory of its own, 1 to 64, of those of the store:
//
//	lock                    held by the process, as long as it lives
//	events                  what waits; see spoolFile
//	events.damaged          what it was before something in it could not be read
//	SHA256.definition       a definition, as it was when events were taken by it
//
// A process that finds a directory whose lock is free takes its events over: that of one that was killed waits for no start.

const (
	mostSpools   = 64
	lockFile     = "lock"
	damagedFile  = eventFile + ".damaged"
	definitionIs = ".definition"
)

// OpenSpool takes a directory of its own, with what waits in it.
func OpenSpool(o SpoolOptions) (*Spool, error) {
	o.Events, o.Bytes = cmp.Or(o.Events, MaxEvents), cmp.Or(o.Bytes, MaxBytes)
	if o.Now == nil {
		o.Now = time.Now
	}
	dir, lock, err := claim(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("events of webhooks: %w", err)
	}
	s := &Spool{o: o, dir: dir, lock: lock, known: map[string]*item{}, lines: map[string]*line{}, uses: map[string]use{}, texts: map[string]bool{},
		file: spoolFile{path: filepath.Join(dir, eventFile), key: o.Key}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("events of webhooks: %w", err), files.FreeLock(lock))
	}
	return s, nil
}

// claim makes the first directory that no process has this one's.
func claim(root string) (dir string, lock *os.File, err error) {
	for n := 1; n <= mostSpools; n++ {
		dir := filepath.Join(root, strconv.Itoa(n))
		for _, d := range []string{filepath.Dir(root), root, dir} { // a clone may have a link in the place of each
			if err := files.MakeDir(d); err != nil {
				return "", nil, err
			}
		}
		lock, err := files.LockNamed(filepath.Join(dir, lockFile), os.O_CREATE)
		if errors.Is(err, files.ErrLocked) {
			continue
		}
		for up := dir; err == nil && len(up) >= len(filepath.Dir(filepath.Dir(root))); up = filepath.Dir(up) {
			if err = files.SyncDir(up); up == filepath.Dir(up) {
				break
			}
		}
		if err != nil && lock != nil {
			err = errors.Join(err, files.FreeLock(lock))
		}
		return dir, lock, err
	}
	return "", nil, protocol.ErrBusy.With("end some of them", "%d processes take events of webhooks in %s", mostSpools, root)
}

// isSpool reports whether a directory of that name is a spool.
func isSpool(name string) bool {
	n, err := strconv.Atoi(name)
	return err == nil && n >= 1 && n <= mostSpools && name == strconv.Itoa(n)
}

// load reads what waits. What cannot be read is moved aside.
func (s *Spool) load() error {
	f, err := files.OpenFile(s.file.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	s.file.f = f
	size, waits, lost, err := s.waiting(f, s.file.path)
	if err == nil {
		err = files.SyncDir(s.dir)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.file.end = size
	used := map[string]bool{}
	s.mu.Lock()
	for _, it := range waits {
		it.frame = nil
		s.add(it, 1)
		s.known[it.request] = it
		close(it.settled)
		s.queue(it)
		used[it.definition] = true
	}
	s.mu.Unlock()
	if lost > 0 {
		if err := s.putAway(f, waits); err != nil {
			return errors.Join(err, s.file.f.Close())
		}
	}
	if len(waits) > 0 {
		s.o.Log.Info("events of webhooks waited for this start", "events", len(waits), "file", s.file.path)
	}
	return s.knowTexts(used)
}

// waiting are the events of a file that have not begun, in order, and how many bytes of it cannot be read, which it tells.
func (s *Spool) waiting(f *os.File, path string) (size int64, waits []*item, lost int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, nil, 0, err
	}
	size = info.Size()
	waits, lost, between, err := s.file.waiting(f, size)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	case lost > between && between == 0 && lost < size:
		s.o.Log.Warn("the end of the file is no whole event: it was being written when this machine stopped, before its sender was answered with 202", "file", path, "bytes", lost)
	case lost > 0:
		s.o.Log.Error("events of webhooks cannot be read: the file is damaged, or was written by another user or on another machine", "file", path, "bytes", lost,
			"fix", "look at "+filepath.Join(filepath.Dir(path), damagedFile)+"; at the service that sends, deliver again what has begun no run")
	}
	return size, waits, lost, err
}

// waiting are the events of a file that have not begun, in order; lost and between are those of scan.
func (s *spoolFile) waiting(f *os.File, size int64) (waits []*item, lost, between int64, err error) {
	known := map[string]int{}
	lost, between, err = s.scan(f, size, func(r record, frame []byte, at int64) {
		if k := r.Kept; k != nil {
			if _, twice := known[k.Request]; twice { // it was taken over, and the process killed before the other file was emptied
				return
			}
			known[k.Request] = len(waits)
			waits = append(waits, &item{hook: k.Hook, request: k.Request, run: k.Run, since: k.Since, definition: k.Definition, at: at, size: int64(len(frame)), kept: true,
				settled: make(chan struct{}), tried: make(chan struct{})})
		}
		for _, request := range r.Begun {
			if i, there := known[request]; there {
				waits[i] = nil
				delete(known, request)
			}
		}
	})
	n := 0
	for _, it := range waits {
		if it != nil {
			waits[n] = it
			n++
		}
	}
	return waits[:n], lost, between, err
}

// putAway keeps the file as it is under another name, and goes on with one that can be read.
func (s *Spool) putAway(f *os.File, waits []*item) error {
	damaged := filepath.Join(s.dir, damagedFile)
	if err := os.Remove(damaged); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(s.file.path, damaged); err != nil {
		return err
	}
	return s.file.rewrite(waits)
}

// takeOver goes on with what processes that are no more have left.
func (s *Spool) takeOver() {
	entries, err := os.ReadDir(s.o.Dir)
	if err != nil {
		s.o.Log.Warn("events of other processes are not looked for", "why", err.Error())
		return
	}
	for _, e := range entries {
		dir := filepath.Join(s.o.Dir, e.Name())
		if !isSpool(e.Name()) || dir == s.dir || s.ctx.Err() != nil {
			continue
		}
		if info, err := os.Lstat(filepath.Join(dir, eventFile)); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
			continue
		}
		lock, err := files.LockNamed(filepath.Join(dir, lockFile), 0)
		if errors.Is(err, files.ErrLocked) {
			continue
		}
		if err == nil {
			err = errors.Join(s.takeFrom(dir), files.FreeLock(lock))
		}
		if err != nil && s.ctx.Err() == nil {
			s.o.Log.Error("events that another process left cannot be taken over", "directory", dir, "why", err.Error(), "again in", lookTime)
		}
	}
}

// takeFrom takes the events of a directory over, whose lock it has.
func (s *Spool) takeFrom(dir string) error {
	path := filepath.Join(dir, eventFile)
	f, err := files.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, waits, lost, err := s.waiting(f, path)
	if err != nil {
		return err
	}
	var mine []*item
	for _, it := range waits {
		text, err := files.Read(filepath.Join(dir, it.definition+definitionIs), mostDefinition)
		if err == nil {
			_, err = s.Define(text)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		it.frame = make([]byte, it.size)
		if _, err := f.ReadAt(it.frame, it.at); err != nil {
			return err
		}
		if it.kept = false; s.keepAll(it) {
			mine = append(mine, it)
		}
	}
	for _, it := range mine {
		if <-it.settled; it.err != nil {
			return it.err
		}
	}
	if len(mine) > 0 {
		s.o.Log.Info("events of webhooks that another process left are taken over", "events", len(mine), "directory", dir)
	}
	if lost > 0 {
		return os.Rename(path, filepath.Join(dir, damagedFile))
	}
	return f.Truncate(0)
}

// keepAll gives an item to the writer, whatever the bounds: it was taken. It is false for one that is known here.
func (s *Spool) keepAll(it *item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[it.request] != nil {
		return false
	}
	s.known[it.request] = it
	s.add(it, 1)
	s.batch = append(s.batch, it)
	s.kick()
	return true
}

// mostDefinition is the most bytes of a definition with all that it names.
const mostDefinition = 256 << 20

// Define keeps a definition, and gives the name that Kept.Definition has for it. It returns when that is on disk.
func (s *Spool) Define(text []byte) (string, error) {
	sum := sha256.Sum256(text)
	name := hex.EncodeToString(sum[:])
	s.mu.Lock()
	there := s.texts[name]
	s.mu.Unlock()
	if there {
		return name, nil
	}
	if err := files.Replace(filepath.Join(s.dir, name+definitionIs), text); err != nil {
		return "", err
	}
	s.mu.Lock()
	s.texts[name] = true
	s.mu.Unlock()
	return name, nil
}

// definition reads one that was kept.
func (s *Spool) definition(name string) ([]byte, error) {
	text, err := files.Read(filepath.Join(s.dir, filepath.Base(name)+definitionIs), mostDefinition)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.Join(ErrUnfit, err)
		}
		return nil, fmt.Errorf("the definition by which the event was taken: %w", err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != name {
		return nil, fmt.Errorf("%w: the definition by which the event was taken is damaged: %w", ErrUnfit, protocol.ErrCorrupt)
	}
	return text, nil
}

// knowTexts finds the definitions that are there, and removes those of no event.
func (s *Spool) knowTexts(used map[string]bool) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), definitionIs)
		if ok && used[name] {
			s.texts[name] = true
			continue
		}
		if ok || strings.Contains(e.Name(), definitionIs+".") { // the latter was being written
			if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Left is what waits in all spools of a store.
type Left struct {
	Events int
	Bytes  int64
	Oldest time.Time // zero where none waits
	Lost   int64     // bytes that cannot be read
}

// Look reads what waits in the spools of a directory, and changes nothing.
func Look(dir string, key []byte) (left Left, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return left, nil
	}
	for _, e := range entries {
		if !isSpool(e.Name()) {
			continue
		}
		f, failed := files.Open(filepath.Join(dir, e.Name(), eventFile))
		if errors.Is(failed, fs.ErrNotExist) { // a process has just begun
			continue
		}
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		info, failed := f.Stat()
		if failed == nil {
			var waits []*item
			var lost, between int64
			waits, lost, between, failed = (&spoolFile{key: key}).waiting(f, info.Size())
			for _, it := range waits {
				left.Events, left.Bytes = left.Events+1, left.Bytes+it.size
				if left.Oldest.IsZero() || it.since.Before(left.Oldest) {
					left.Oldest = it.since
				}
			}
			if between > 0 || lost == info.Size() { // the end is being written
				left.Lost += lost
			}
		}
		err = errors.Join(err, failed, f.Close())
	}
	return left, err
}
