package workspace

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace/internal/at"
)

// Seen is what was seen of the files of a directory when its tree was taken: what has not changed since has the blocks that
// it had. It holds of a store that has the tree, and of the secrets that were looked for.
type Seen struct {
	Root  protocol.Link // of the tree
	dirs  map[string]*seenDir
	mu    sync.Mutex
	next  map[string]*seenDir
	clock int64 // of the file system, when the taking began
	after int64 // nanoseconds until a change has settled
}

// Settled is how old a change of a file is when its content is believed to be that of its stat: within one tick of the file
// system's clock a file can change twice, and the writes of a mapping are told up to half a minute late.
const Settled = 60 * time.Second

// NewSeen has seen nothing. Changes settle after Settled; with 0, for tests, at the next tick of the clock.
func NewSeen(after time.Duration) *Seen { return &Seen{after: int64(after)} }

// Again is the same for another taking, which may be at the same time.
func (s *Seen) Again() *Seen {
	if s == nil {
		return nil
	}
	return &Seen{Root: s.Root, dirs: s.dirs, after: s.after}
}

// seenDir is a directory.
type seenDir struct {
	link    protocol.Link // its tree
	entries []tree.Entry
	files   []seenFile // those that were settled, by name
	was     *seenDir   // when it was seen before
	at      int        // how far its files were looked at: names come in their order
	clock   int64      // changes before it have settled
}

type seenFile struct {
	stat
	entry tree.Entry
}

// begin is called before the directories are.
func (s *Seen) begin(top int) (err error) {
	s.next = make(map[string]*seenDir, len(s.dirs))
	s.clock, err = clockOf(top)
	return err
}

// end is called when the tree is taken.
func (s *Seen) end(root protocol.Link) {
	for _, d := range s.next {
		d.was = nil
	}
	s.Root, s.dirs, s.next = root, s.next, nil
}

// clockOf is the time of the file system of a directory, in nanoseconds, as a file without a name has it. Where it cannot
// make one, it is that of the machine, and an hour less: files of the last hour are read again then.
func clockOf(dir int) (int64, error) {
	fd, err := at.Nameless(dir, 0o600)
	if err != nil {
		return time.Now().Add(-time.Hour).UnixNano(), nil
	}
	defer unix.Close(fd)
	var s unix.Stat_t
	err = unix.Fstat(fd, &s)
	return s.Ctim.Nano(), err
}

// dir is a directory that is taken. All methods of nil do nothing.
func (s *Seen) dir(path string) *seenDir {
	if s == nil {
		return nil
	}
	d := &seenDir{was: s.dirs[path], clock: s.clock - s.after}
	if d.was == nil {
		d.was = new(seenDir)
	}
	d.files = make([]seenFile, 0, len(d.was.files))
	s.mu.Lock()
	s.next[path] = d
	s.mu.Unlock()
	return d
}

// file is what a file is that has not changed.
func (d *seenDir) file(name string, now stat) (tree.Entry, bool) {
	if d == nil {
		return tree.Entry{}, false
	}
	for d.at < len(d.was.files) && d.was.files[d.at].entry.Name < name {
		d.at++
	}
	if d.at == len(d.was.files) || d.was.files[d.at].entry.Name != name || d.was.files[d.at].stat != now {
		return tree.Entry{}, false
	}
	d.files = append(d.files, d.was.files[d.at])
	return d.was.files[d.at].entry, true
}

// remember takes in a file that was read, if it was settled.
func (d *seenDir) remember(e tree.Entry, is stat) {
	if d != nil && (e.Why == "" || e.Why == tree.WhySecret) && is.ctime < d.clock {
		d.files = append(d.files, seenFile{is, e})
	}
}

// same is the tree of a directory that has the entries that it had.
func (d *seenDir) same(entries []tree.Entry) (protocol.Link, bool) {
	if d == nil || !d.was.link.Defined() || !slices.Equal(d.was.entries, entries) {
		return protocol.Link{}, false
	}
	d.entries, d.link = d.was.entries, d.was.link
	return d.link, true
}

// keep takes in the tree of a directory.
func (d *seenDir) keep(entries []tree.Entry, link protocol.Link) {
	if d != nil {
		d.entries, d.link = entries, link
	}
}
