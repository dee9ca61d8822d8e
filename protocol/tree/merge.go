package tree

import "wf/protocol"

// Merge makes one tree of several: of two entries with the same path the one of the later tree counts, and directories are
// joined. put gets the blocks that are new. A null root has nothing; the link is null where all are.
func Merge(read Read, put func(Block) error, roots ...protocol.Link) (protocol.Link, error) {
	m := merger{read: read, put: put}
	e, err := m.dirs(Entry{Mode: Dir}, roots, 1)
	return e.Link, err
}

type merger struct {
	read Read
	put  func(Block) error
	seen int
}

// dirs joins directories; the newest is the last one.
func (m *merger) dirs(as Entry, roots []protocol.Link, depth int) (Entry, error) {
	if depth > DepthMax {
		return as, errTooDeep
	}
	var lists [][]Entry
	as.Link = protocol.Link{}
	for _, root := range roots {
		if !root.Defined() || root == as.Link {
			continue
		}
		entries, err := Entries(m.read, root)
		if err != nil {
			return as, err
		}
		if m.seen += len(entries); m.seen > WalkMax {
			return as, errTooMany
		}
		as.Link, lists = root, append(lists, entries)
	}
	if len(lists) < 2 {
		if len(lists) == 1 {
			as.Size = sizeOf(lists[0])
		}
		return as, nil
	}
	var out []Entry
	for {
		name := ""
		for _, list := range lists {
			if len(list) > 0 && (name == "" || list[0].Name < name) {
				name = list[0].Name
			}
		}
		if name == "" {
			break
		}
		var same []Entry
		for i, list := range lists {
			if len(list) > 0 && list[0].Name == name {
				same, lists[i] = append(same, list[0]), list[1:]
			}
		}
		e, err := m.entry(same, depth)
		if err != nil {
			return as, err
		}
		out = append(out, e)
	}
	blocks, err := Encode(out)
	if err != nil {
		return as, err
	}
	for _, b := range blocks {
		if err := m.put(b); err != nil {
			return as, err
		}
	}
	as.Link, as.Size = blocks[len(blocks)-1].Link, sizeOf(out)
	return as, nil
}

// entry is what counts of entries with one name: the newest, and where it is a directory all in front of it that are too.
func (m *merger) entry(same []Entry, depth int) (Entry, error) {
	newest := same[len(same)-1]
	if newest.Mode != Dir {
		return newest, nil
	}
	roots := []protocol.Link{newest.Link}
	for i := len(same) - 2; i >= 0 && same[i].Mode == Dir; i-- {
		roots = append([]protocol.Link{same[i].Link}, roots...)
	}
	if len(roots) == 1 {
		return newest, nil
	}
	return m.dirs(newest, roots, depth+1)
}

// sizeOf is the size of a directory: of the files in it.
func sizeOf(entries []Entry) (size int64) {
	for _, e := range entries {
		if e.Mode != Omitted && e.Mode != Link {
			size += e.Size
		}
	}
	return size
}
