package tree

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"

	"wf/protocol"
)

// Kinds of conflicts: what the side that was merged later did that could not be taken over.
const (
	ConflictLines   = "lines"   // both sides changed the same lines of a text, or lines that touch
	ConflictBinary  = "binary"  // both sides changed a file that is no text
	ConflictSize    = "size"    // both sides changed a text over MergeMax or MergeLines
	ConflictAdd     = "add"     // both sides made a file or link, and not the same
	ConflictDelete  = "delete"  // one side removed what the other changed
	ConflictType    = "type"    // what is a file on one side is a link or a directory on the other
	ConflictLink    = "link"    // both sides changed where a link points to
	ConflictMode    = "mode"    // both sides made the same file, and one of them made it executable
	ConflictOmitted = "omitted" // the content of one side is not in its tree
)

// MergeMax is the length in bytes of the longest text whose lines are merged, and MergeLines how many it has.
const (
	MergeMax   = 1 << 20
	MergeLines = 100_000
)

// A Conflict is a path at which a side was not taken over, or not wholly.
type Conflict struct {
	Path string
	Kind string
	Side int // index of the side that lost
	// Lines are, for ConflictLines, the lines that were not taken over, with those that stand in their place; cut at
	// ConflictMax bytes.
	Lines string
}

// ConflictMax is the length in bytes at which the lines of a conflict are cut.
const ConflictMax = 4 << 10

// ThreeWay takes over what each side changed of base, side by side in their order. A null link is an empty tree. The blocks that
// are new go to put, and read must find them.
//
// By path, for each side against what the sides before it made of base:
//
//   - what one of both changed is as that one has it, and so is what both changed to the same;
//   - texts that both changed are merged by lines: changes that do not touch are all taken over, and where they do, the lines of the
//     earlier side stay and the path is a conflict;
//   - everything else that both changed is a conflict, and stays as the earlier side has it.
//
// A text has no NUL, and its lines end behind each line feed. Whether a file is executable is merged apart from its content.
// What is omitted in all trees alike counts as not changed, since its content is known to none. A directory without entries stays
// if both sides have it, or one and the base had none.
//
// The result is a function of the trees and their order alone; it is part of protocol.Semantics, and pinned by it.
func ThreeWay(read Read, put func(Block) error, base protocol.Link, sides []protocol.Link) (merged protocol.Link, conflicts []Conflict, err error) {
	m := &threeWay{read: read, put: put}
	merged = base
	for i, side := range sides {
		m.side = i
		e, err := m.entry(dirOf(base), dirOf(merged), dirOf(side), "", 0)
		if err != nil {
			return protocol.Link{}, nil, err
		}
		merged = e.Link
	}
	return merged, m.conflicts, nil
}

// dirOf is the entry of a root, without name and size, which the root does not have.
func dirOf(root protocol.Link) Entry {
	if !root.Defined() {
		return Entry{}
	}
	return Entry{Mode: Dir, Link: root}
}

type threeWay struct {
	read      Read
	put       func(Block) error
	side      int
	seen      int
	conflicts []Conflict
}

// conflict notes a path, at which ours stays.
func (m *threeWay) conflict(path, kind string, ours Entry) (Entry, error) {
	m.conflicts = append(m.conflicts, Conflict{Path: path, Kind: kind, Side: m.side})
	return ours, nil
}

func isFile(e Entry) bool { return e.Mode == File || e.Mode == Exec }

// entry merges what lies at a path; a zero entry is nothing.
func (m *threeWay) entry(base, ours, theirs Entry, path string, depth int) (Entry, error) {
	if ours == theirs || theirs == base {
		return ours, nil
	}
	if ours == base {
		return theirs, nil
	}
	gone := ours.Mode == "" || theirs.Mode == ""
	switch {
	case ours.Mode == Omitted || theirs.Mode == Omitted:
		return m.conflict(path, ConflictOmitted, ours)
	case ours.Mode == Dir && theirs.Mode == Dir, gone && base.Mode == Dir && (ours.Mode == Dir || theirs.Mode == Dir):
		if base.Mode != Dir {
			base = Entry{}
		}
		return m.dir(base, ours, theirs, path, depth)
	case gone:
		return m.conflict(path, ConflictDelete, ours)
	case isFile(ours) && isFile(theirs) && base.Mode == "":
		if ours.Link == theirs.Link {
			return m.conflict(path, ConflictMode, ours)
		}
		return m.conflict(path, ConflictAdd, ours)
	case isFile(base) && isFile(ours) && isFile(theirs):
		return m.file(base, ours, theirs, path)
	case ours.Mode == Link && theirs.Mode == Link && base.Mode == "":
		return m.conflict(path, ConflictAdd, ours)
	case ours.Mode == Link && theirs.Mode == Link:
		return m.conflict(path, ConflictLink, ours)
	}
	return m.conflict(path, ConflictType, ours)
}

// dir merges directories; one that is not there has no entries.
func (m *threeWay) dir(base, ours, theirs Entry, path string, depth int) (Entry, error) {
	if depth++; depth > DepthMax {
		return Entry{}, errTooDeep
	}
	var lists [3][]Entry
	for i, d := range []Entry{base, ours, theirs} {
		if d.Mode != Dir {
			continue
		}
		entries, err := Entries(m.read, d.Link)
		if err != nil {
			return Entry{}, err
		}
		if m.seen += len(entries); m.seen > 3*WalkMax {
			return Entry{}, errTooMany
		}
		lists[i] = entries
	}
	var out []Entry
	var size int64
	for {
		name := first(lists)
		if name == "" {
			break
		}
		var at [3]Entry
		for i, l := range lists {
			if len(l) > 0 && l[0].Name == name {
				at[i], lists[i] = l[0], l[1:]
			}
		}
		below := name
		if path != "" {
			below = path + "/" + name
		}
		e, err := m.entry(at[0], at[1], at[2], below, depth)
		if err != nil {
			return Entry{}, err
		}
		if e.Mode == "" {
			continue
		}
		out = append(out, e)
		if e.Mode != Omitted && e.Mode != Link {
			size += e.Size
		}
	}
	if len(out) == 0 && (ours.Mode != Dir || theirs.Mode != Dir) && base.Mode == Dir {
		return Entry{}, nil
	}
	blocks, err := Encode(out)
	if err != nil {
		return Entry{}, err
	}
	for _, b := range blocks {
		if err := m.put(b); err != nil {
			return Entry{}, err
		}
	}
	e := Entry{Name: cmp.Or(ours.Name, theirs.Name), Mode: Dir, Link: blocks[len(blocks)-1].Link, Size: size}
	if path == "" {
		e.Size = 0 // as dirOf has it
	}
	return e, nil
}

// first is the name that comes first in sorted lists.
func first(lists [3][]Entry) (name string) {
	for _, l := range lists {
		if len(l) > 0 && (name == "" || l[0].Name < name) {
			name = l[0].Name
		}
	}
	return name
}

// file merges files that all three trees have.
func (m *threeWay) file(base, ours, theirs Entry, path string) (Entry, error) {
	mode := ours.Mode
	if ours.Mode == base.Mode {
		mode = theirs.Mode
	}
	out := ours
	out.Mode = mode
	switch {
	case ours.Link == theirs.Link || theirs.Link == base.Link:
		return out, nil
	case ours.Link == base.Link:
		out.Link, out.Size = theirs.Link, theirs.Size
		return out, nil
	case max(base.Size, ours.Size, theirs.Size) > MergeMax:
		return m.conflict(path, ConflictSize, out)
	}
	var texts [3][]byte
	for i, e := range []Entry{base, ours, theirs} {
		r, err := Open(m.read, e)
		if err != nil {
			return Entry{}, err
		}
		if texts[i], err = io.ReadAll(r); err != nil {
			return Entry{}, err
		}
		if bytes.IndexByte(texts[i], 0) >= 0 {
			return m.conflict(path, ConflictBinary, out)
		}
		if bytes.Count(texts[i], []byte("\n")) >= MergeLines {
			return m.conflict(path, ConflictSize, out)
		}
	}
	text, lost := mergeLines(texts[0], texts[1], texts[2])
	if lost != "" {
		m.conflicts = append(m.conflicts, Conflict{path, ConflictLines, m.side, lost})
	}
	link, err := Content(bytes.NewReader(text), int64(len(text)), m.put)
	out.Link, out.Size = link, int64(len(text))
	return out, err
}

// mergeLines merges two changes of a text. Where they touch, the lines are those of ours, and lost has both.
func mergeLines(base, ours, theirs []byte) (merged []byte, lost string) {
	var table lineTable
	b, o, t := table.lines(base), table.lines(ours), table.lines(theirs)
	left, right := diffLines(b, o), diffLines(b, t)
	var out, losses strings.Builder
	at := 0      // of base: what lies before it is merged
	shift := 0   // from a line of base to that of ours
	shiftTo := 0 // the same for theirs
	for len(left)+len(right) > 0 {
		// The hunks that touch each other, and the lines of base that they take up.
		var from, to int
		if len(right) == 0 || len(left) > 0 && left[0].from <= right[0].from {
			from = left[0].from
		} else {
			from = right[0].from
		}
		to = from
		var nl, nr, grownL, grownR int
		for {
			if nl < len(left) && left[nl].from <= to {
				to, grownL, nl = max(to, left[nl].to), grownL+left[nl].grown(), nl+1
			} else if nr < len(right) && right[nr].from <= to {
				to, grownR, nr = max(to, right[nr].to), grownR+right[nr].grown(), nr+1
			} else {
				break
			}
		}
		table.write(&out, b[at:from])
		mine := o[from+shift : to+shift+grownL]
		other := t[from+shiftTo : to+shiftTo+grownR]
		switch {
		case nl == 0:
			table.write(&out, other)
		case nr > 0 && !slices.Equal(mine, other):
			table.lose(&losses, mine, other)
			fallthrough
		default:
			table.write(&out, mine)
		}
		at, shift, shiftTo, left, right = to, shift+grownL, shiftTo+grownR, left[nl:], right[nr:]
	}
	table.write(&out, b[at:])
	return []byte(out.String()), losses.String()
}
