package appear

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/roles/workspace/control"
	"wf/roles/workspace/internal/at"
)

// bounds are those of what is looked at. Beyond them an Appeared is Partial.
type bounds struct {
	dirs    int // that are known
	entries int // names that one look reads
}

var defaultBounds = bounds{dirs: 100_000, entries: 1_000_000}

const (
	depthMax = 100   // directories on the way to one
	itemsMax = 1_000 // items of a directory
)

// unsettled is how old a directory's ctime must be for a change after the look to have another one: clocks
// of file systems are coarse. A younger directory is read again by the next look.
const unsettled = 2 * time.Second

// errFlood says that there is more than is read.
var errFlood = errors.New("it holds more than is read")

// A dir is a directory that was read.
type dir struct {
	name    string
	kids    []*dir // by name
	items   []*item
	sockets []string // names
	stamp   stamp
	settled bool
	cut     bool // it was not read as a whole
	late    bool // it was there before anything was to be found, and was not read as a whole since
}

// An item is what programs act on, in a directory; its name is "" for the directory itself.
type item struct {
	kind  protocol.FoundKind
	name  string
	stamp stamp
	made  bool   // while a command ran
	leads uint64 // sums up to what a link leads, see Watch.follow; 0 before the first look at it
	state *state // of a repository; nil before the first look at it
}

// whole reports whether an item is watched as a file, all of it, or by its identity alone.
func (i *item) whole() bool {
	return i.kind == protocol.FoundGitLink || i.kind == protocol.FoundEnvrc || i.kind == protocol.FoundTasks || i.kind == protocol.FoundWorkflow
}

// isLink reports whether programs act on what lies elsewhere, to which an item leads. That of git is a matter of its repository.
func (i *item) isLink() bool {
	return i.stamp.link && i.kind != protocol.FoundGitLink && i.kind != protocol.FoundStore
}

// size counts a directory and those below it.
func (d *dir) size() int {
	n := 1
	for _, k := range d.kids {
		n += k.size()
	}
	return n
}

func byName(d *dir, name string) int { return strings.Compare(d.name, name) }

// A look brings what is known of a workspace up to date.
type look struct {
	root    int
	eye     *control.Eye
	top     string // the root, absolute
	bounds  bounds
	began   int64 // ns, by the clock of file systems
	dirs    int   // that are known
	entries int   // that were read
	partial bool
	queue   [][]place // what is to be read, by depth
	found   func(path string, changed bool, i *item)
}

type place struct {
	dir   *dir
	path  string
	depth int
}

// stat is lstat of a name in an open directory, which has a path from the top.
func (l *look) stat(fd int, in, name string) (s unix.Stat_t, err error) {
	if s, err = at.Stat(fd, name); err == nil || gone(err) { // of nearly all, which need no path
		return s, err
	}
	err = l.eye.Again(filepath.Join(l.top, in), func() error { s, err = at.Stat(fd, name); return err })
	return s, err
}

// open opens a directory to be read, by its path from the top.
func (l *look) open(path string) (fd int, err error) {
	err = l.eye.Again(filepath.Join(l.top, path), func() error { fd, err = openBelow(l.root, path); return err })
	return fd, err
}

// update reads what changed below the top, the shallow first.
func (l *look) update(top *dir) {
	s, err := at.Stat(l.root, ".")
	if err != nil {
		l.partial = true
		return
	}
	l.check(place{top, ".", 0}, &s)
	l.known(place{top, ".", 0}, l.root)
	for depth := 0; depth < len(l.queue); depth++ { // what is read adds to the next one
		for _, p := range l.queue[depth] {
			l.read(p)
		}
		l.queue[depth] = nil
	}
}

func (l *look) later(p place) {
	for len(l.queue) <= p.depth {
		l.queue = append(l.queue, nil)
	}
	l.queue[p.depth] = append(l.queue[p.depth], p)
}

// check queues a directory that changed since it was read.
func (l *look) check(p place, s *unix.Stat_t) {
	now := stampOf(s)
	if p.dir.settled && p.dir.stamp == now {
		l.partial = l.partial || p.dir.cut
		return
	}
	if !p.dir.stamp.same(now) { // another one of that name
		l.dirs -= p.dir.size() - 1
		p.dir.kids, p.dir.items, p.dir.sockets = nil, nil, nil
	}
	p.dir.settled = false
	l.later(p)
}

// known looks at what is known in an open directory.
func (l *look) known(p place, fd int) {
	for _, i := range p.dir.items {
		if !i.whole() {
			continue
		}
		if s, err := l.stat(fd, p.path, i.name); err == nil && stampOf(&s) != i.stamp {
			i.stamp = stampOf(&s)
			l.found(join(p.path, i.name), true, i)
		}
	}
	for _, k := range p.dir.kids {
		s, err := l.stat(fd, p.path, k.name)
		if err != nil || kindOf(&s) != unix.S_IFDIR {
			continue // p has changed, and is read
		}
		below := place{k, join(p.path, k.name), p.depth + 1}
		l.check(below, &s)
		if len(k.kids)+len(k.items) == 0 {
			continue
		}
		inner, err := at.Open(fd, k.name, at.PathOnly|unix.O_DIRECTORY)
		if err != nil {
			k.settled, l.partial = false, true
			continue
		}
		l.known(below, inner)
		unix.Close(inner)
	}
}

// read reads a directory: what it has lost is forgotten, what is new in it is read after it.
func (l *look) read(p place) {
	d := p.dir
	fd, err := l.open(p.path)
	if gone(err) {
		return
	}
	d.cut = true
	if err != nil {
		if s, err := statBelow(l.root, p.path); err == nil && l.eye.Closed(filepath.Join(l.top, p.path)) {
			d.stamp, d.cut = stampOf(&s), false // of another user: a command does not enter it either
		}
		l.partial = l.partial || d.cut
		return
	}
	f := listing(fd)
	defer f.Close()
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		l.partial = true
		return
	}
	d.cut = false
	d.stamp = stampOf(&s)
	d.settled = d.stamp.ctime < l.began-int64(unsettled)
	var kids []*dir
	var items []*item
	var sockets []string
	var parts bareParts
	err = entries(f, func(e fs.DirEntry) bool {
		if l.entries++; l.entries > l.bounds.entries {
			d.cut = true
			return false
		}
		name := e.Name()
		parts.add(name)
		if e.Type()&fs.ModeSocket != 0 {
			sockets = append(sockets, name)
		}
		kind, inner := classify(p.path, name, e.Type())
		if kind != "" && len(items) >= itemsMax {
			d.cut = true
		} else if kind != "" {
			if i := l.item(fd, p, kind, name); i != nil {
				items = append(items, i)
			}
		}
		if !inner {
			return true
		}
		if at, ok := slices.BinarySearchFunc(d.kids, name, byName); ok {
			kids = append(kids, d.kids[at])
			return true
		}
		if l.dirs >= l.bounds.dirs || p.depth >= depthMax {
			d.cut = true
			return true
		}
		l.dirs++
		kids = append(kids, &dir{name: name, late: d.late})
		return true
	})
	if err != nil {
		d.cut = true
	}
	if parts.bare() {
		if i := l.item(fd, p, protocol.FoundBare, ""); i != nil {
			items = append(items, i)
		}
	}
	slices.SortFunc(kids, func(a, b *dir) int { return strings.Compare(a.name, b.name) })
	if d.cut { // what was not reached stays known
		l.partial, d.settled = true, false
		items = append(items, missing(d.items, items, func(a, b *item) int {
			return cmp.Or(strings.Compare(string(a.kind), string(b.kind)), strings.Compare(a.name, b.name))
		})...)
		kids = append(kids, missing(d.kids, kids, func(a, b *dir) int { return strings.Compare(a.name, b.name) })...)
		sockets = append(sockets, missing(d.sockets, sockets, strings.Compare)...)
		slices.SortFunc(kids, func(a, b *dir) int { return strings.Compare(a.name, b.name) })
	}
	d.sockets = sockets
	l.renew(p, kids, items)
	d.late = d.late && d.cut
}

// missing are those of old that are not among now.
func missing[T any](old, now []T, compare func(a, b T) int) []T {
	now = slices.SortedFunc(slices.Values(now), compare)
	return slices.DeleteFunc(slices.Clone(old), func(x T) bool {
		_, there := slices.BinarySearchFunc(now, x, compare)
		return there
	})
}

// renew gives a directory what was read in it.
func (l *look) renew(p place, kids []*dir, items []*item) {
	d := p.dir
	for _, k := range d.kids {
		if _, still := slices.BinarySearchFunc(kids, k.name, byName); !still {
			l.dirs -= k.size()
		}
	}
	for _, k := range kids {
		if k.stamp == (stamp{}) {
			l.later(place{k, join(p.path, k.name), p.depth + 1})
		}
	}
	before := d.items
	d.kids, d.items = kids, items
	for _, i := range items {
		if !d.late && !slices.Contains(before, i) {
			l.found(join(p.path, i.name), false, i)
		}
	}
}

// item is what is known as a kind and name in an open directory, or a new one.
func (l *look) item(fd int, p place, kind protocol.FoundKind, name string) *item {
	var s unix.Stat_t
	var err error
	if name == "" {
		err = unix.Fstat(fd, &s)
	} else {
		s, err = l.stat(fd, p.path, name)
	}
	if err != nil {
		l.partial = l.partial || !gone(err)
		return nil
	}
	now := stampOf(&s)
	for _, i := range p.dir.items {
		if i.kind == kind && i.name == name && (i.stamp == now || !i.whole() && i.stamp.same(now)) {
			return i
		}
	}
	return &item{kind: kind, name: name, stamp: now}
}

// gone reports whether there is no directory any more where one was.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}
