package tree

import (
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// Edit makes another tree of one. The edits are what is to lie at paths: a zero Entry is nothing, and a directory one that is to
// be there, with what the other edits put into it. One that becomes empty goes where an edit says so. put takes the blocks.
func Edit(read Read, root protocol.Link, edits map[string]Entry, put func(Block) error) (protocol.Link, error) {
	top := &spot{}
	for path, e := range edits {
		at := top
		for name := range strings.SplitSeq(path, "/") {
			if why := CheckName(name); why != "" {
				return root, fmt.Errorf("the name %q %s: %w", path, why, protocol.ErrInvalidBlock)
			}
			if at.below == nil {
				at.below = map[string]*spot{}
			}
			next := at.below[name]
			if next == nil {
				next = &spot{}
				at.below[name] = next
			}
			at = next
		}
		at.is = &e
	}
	made := map[protocol.Link][]byte{}
	x := editor{func(l protocol.Link) ([]byte, error) {
		if data, ok := made[l]; ok {
			return data, nil
		}
		return read(l)
	}, func(b Block) error {
		made[b.Link] = b.Data
		return put(b)
	}}
	e, err := x.dir(Entry{Mode: Dir, Link: root}, top, 1)
	return e.Link, err
}

// spot is a path on the way to edits.
type spot struct {
	is    *Entry // nil where no edit is for the path itself
	below map[string]*spot
}

type editor struct {
	read Read
	put  func(Block) error
}

// dir edits a directory; one without a link is new.
func (x *editor) dir(e Entry, at *spot, depth int) (Entry, error) {
	if depth > DepthMax {
		return e, errTooDeep
	}
	var entries []Entry
	if e.Link.Defined() {
		var err error
		if entries, err = Entries(x.read, e.Link); err != nil {
			return e, err
		}
	}
	out := slices.Clone(entries)
	for name, next := range at.below {
		i, there := slices.BinarySearchFunc(out, name, func(e Entry, name string) int { return strings.Compare(e.Name, name) })
		was := Entry{}
		if there {
			was = out[i]
		}
		is, err := x.entry(was, name, next, depth)
		if err != nil {
			return e, err
		}
		switch {
		case is.Mode == "" && there:
			out = slices.Delete(out, i, i+1)
		case is.Mode != "" && there:
			out[i] = is
		case is.Mode != "":
			out = slices.Insert(out, i, is)
		}
	}
	if e.Link.Defined() && slices.Equal(entries, out) {
		return e, nil
	}
	blocks, err := Encode(out)
	if err != nil {
		return e, err
	}
	for _, b := range blocks {
		if err := x.put(b); err != nil {
			return e, err
		}
	}
	e.Link, e.Size = blocks[len(blocks)-1].Link, 0
	for i := range out {
		if m := out[i].Mode; m != Omitted && m != Link {
			e.Size += out[i].Size
		}
	}
	return e, nil
}

// entry edits what lies under a name.
func (x *editor) entry(was Entry, name string, at *spot, depth int) (Entry, error) {
	goes, comes := at.is != nil && at.is.Mode == "", at.is != nil && at.is.Mode == Dir
	switch {
	case at.is != nil && !goes && !comes:
		is := *at.is
		is.Name = name
		return is, nil
	case was.Mode != Dir && at.is == nil && was.Mode != "": // a file lies in the way
		return was, nil
	}
	dir := was
	if was.Mode != Dir {
		dir = Entry{Name: name, Mode: Dir}
	}
	dir, err := x.dir(dir, at, depth+1)
	if err != nil || comes || !goes && was.Mode == Dir {
		return dir, err
	}
	left, err := Entries(x.read, dir.Link)
	if err == nil && len(left) == 0 {
		return Entry{}, nil
	}
	return dir, err
}
