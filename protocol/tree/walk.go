package tree

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"strings"

	"wf/protocol"
)

// DepthMax is how many directories lie within each other at most. WalkMax is how many entries Walk yields,
// and Diff compares: a few blocks can name each other to more of them than anyone can read. Both end before they yield what
// comes to more so.
const (
	DepthMax = 128
	WalkMax  = protocol.TrackFilesMax
)

// Item is an entry with its path from the root of the tree, with slashes.
type Item struct {
	Path string
	Entry
}

// Entries reads a directory. Blocks that are no tree are an error wrapping protocol.ErrInvalidBlock; others
// are those of read.
func Entries(read Read, dir protocol.Link) ([]Entry, error) {
	n, err := node(read, dir)
	if err != nil || n.Parts == nil {
		return n.Entries, err
	}
	var out []Entry
	for _, l := range n.Parts {
		part, err := node(read, l)
		if err != nil {
			return nil, err
		}
		if len(part.Entries) == 0 || len(out) > 0 && out[len(out)-1].Name >= part.Entries[0].Name {
			return nil, invalid("tree", "its parts do not follow each other")
		}
		if out = append(out, part.Entries...); len(out) > WalkMax {
			return nil, errTooMany
		}
	}
	return out, nil
}

func node(read Read, l protocol.Link) (Node, error) {
	if !isRecord(l) {
		return Node{}, invalid("tree", fmt.Sprintf("the link %q names none", l))
	}
	b, err := read(l)
	if err != nil {
		return Node{}, err
	}
	n, err := Decode(b)
	if err != nil {
		return Node{}, fmt.Errorf("%s: %w", l, err)
	}
	return n, nil
}

var (
	errTooMany = fmt.Errorf("a tree of more than %d entries: %w", WalkMax, protocol.ErrInvalidBlock)
	errTooDeep = fmt.Errorf("a tree of more than %d directories within each other: %w", DepthMax, protocol.ErrInvalidBlock)
	errStop    = errors.New("no more is wanted")
)

// Walk yields what is in a tree but the directories themselves, sorted by the names on the way. It ends
// with its first error; those of blocks are as Entries says.
func Walk(read Read, root protocol.Link) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		seen, all := 0, counter{read: read}
		var walk func(dir protocol.Link, path string, depth int) error
		walk = func(dir protocol.Link, path string, depth int) error {
			if depth > DepthMax {
				return errTooDeep
			}
			if err := all.meet([2]protocol.Link{{}, dir}, [2]protocol.Link{{}, root}); err != nil {
				return err
			}
			entries, err := Entries(read, dir)
			if err != nil {
				return err
			}
			if seen += len(entries); seen > WalkMax {
				return errTooMany
			}
			for _, e := range entries {
				switch p := path + e.Name; {
				case e.Mode == Dir:
					if err := walk(e.Link, p+"/", depth+1); err != nil {
						return err
					}
				case !yield(Item{p, e}, nil):
					return errStop
				}
			}
			return nil
		}
		if err := walk(root, "", 1); err != nil && err != errStop {
			yield(Item{}, err)
		}
	}
}

// Find finds an entry by its path. One that is not there is an error wrapping protocol.ErrUnknownArtifact.
func Find(read Read, root protocol.Link, path string) (Entry, error) {
	at := Entry{Mode: Dir, Link: root}
	for name := range strings.SplitSeq(path, "/") {
		if at.Mode != Dir {
			return Entry{}, fmt.Errorf("%q: %w", path, protocol.ErrUnknownArtifact)
		}
		entries, err := Entries(read, at.Link)
		if err != nil {
			return Entry{}, err
		}
		found := false
		for _, e := range entries {
			if e.Name == name {
				at, found = e, true
				break
			}
		}
		if !found {
			return Entry{}, fmt.Errorf("%q: %w", path, protocol.ErrUnknownArtifact)
		}
	}
	return at, nil
}

// Change is a path of which two trees have different entries; a zero Entry is none.
type Change struct {
	Path          string
	Before, After Entry
}

// Diff yields in what two trees differ, by path; a null link is an empty tree. Files and links are told as they are
// before and after; a directory that comes, before what is in it, and one that goes, behind that. What takes the
// place of a directory, or a directory that of a file, is told as one that goes and one that comes. What is below
// directories that are the same is not read.
func Diff(read Read, before, after protocol.Link) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		d := differ{read: read, yield: yield, roots: [2]protocol.Link{before, after}, counter: counter{read: read}}
		if err := d.dirs(before, after, "", 1); err != nil && err != errStop {
			yield(Change{}, err)
		}
	}
}

type differ struct {
	read    Read
	roots   [2]protocol.Link
	counter counter
	seen    int
	yield   func(Change, error) bool
}

func (d *differ) dirs(before, after protocol.Link, path string, depth int) error {
	if before == after {
		return nil
	}
	if depth > DepthMax {
		return errTooDeep
	}
	if err := d.counter.meet([2]protocol.Link{before, after}, d.roots); err != nil {
		return err
	}
	a, err := d.entries(before)
	if err != nil {
		return err
	}
	b, err := d.entries(after)
	if err != nil {
		return err
	}
	for len(a)+len(b) > 0 {
		x, y := pairOf(&a, &b)
		if err := d.pair(x, y, path, depth); err != nil {
			return err
		}
	}
	return nil
}

// pair compares what two directories have under one name.
func (d *differ) pair(x, y Entry, path string, depth int) error {
	if x == y {
		return nil
	}
	path += cmp.Or(x.Name, y.Name)
	was, is := x.Mode == Dir, y.Mode == Dir
	switch {
	case was && is:
		return d.dirs(x.Link, y.Link, path+"/", depth+1)
	case !was && !is:
		return d.change(Change{path, x, y})
	}
	if was {
		if err := d.dirs(x.Link, protocol.Link{}, path+"/", depth+1); err != nil {
			return err
		}
	}
	if err := d.change(Change{path, x, Entry{}}); err != nil {
		return err
	}
	if err := d.change(Change{path, Entry{}, y}); err != nil || was {
		return err
	}
	return d.dirs(protocol.Link{}, y.Link, path+"/", depth+1)
}

func (d *differ) change(c Change) error {
	if c.Before != c.After && !d.yield(c, nil) {
		return errStop
	}
	return nil
}

func (d *differ) entries(dir protocol.Link) ([]Entry, error) {
	if !dir.Defined() {
		return nil, nil
	}
	entries, err := Entries(d.read, dir)
	if d.seen += len(entries); err == nil && d.seen > WalkMax {
		err = errTooMany
	}
	return entries, err
}
