package query

import (
	"errors"
	"path"

	"wf/api"
	"wf/protocol"
	"wf/protocol/tree"
)

// merge is merged where the files of all visits are kept: else they are not told apart.
func (b *blamer) merge(l *api.Looks, m *api.OwnVisit, file string) error {
	before := *b
	err := b.merged(l, m, file)
	if errors.Is(err, protocol.ErrNotFound) {
		*b, err = before, nil
	}
	return err
}

// merged goes on to what a file was each time that a merge had taken over one more visit, as the merge did: what a visit
// changed in its own copy was written by that visit. Where that does not lead to what the merge recorded, or the file was not as at
// the fan-out, nothing is told apart: then it was written by the merge.
func (b *blamer) merged(l *api.Looks, m *api.OwnVisit, file string) error {
	before, kept, made := *b, b.read, map[protocol.Link][]byte{}
	put := func(x tree.Block) error { made[x.Link] = x.Data; return nil }
	read := func(l protocol.Link) ([]byte, error) {
		if data, ok := made[l]; ok {
			return data, nil
		}
		return kept(l)
	}
	base, err := fileIn(kept, m.Base, file)
	if err != nil || !sameFile(base, b.is) {
		return err
	}
	// only is a tree with the file alone, so that nothing else is merged again.
	only := func(e tree.Entry) (protocol.Link, error) {
		if e.Mode == "" {
			return protocol.Link{}, nil
		}
		e.Name = path.Base(file)
		blocks, err := tree.Encode([]tree.Entry{e})
		if err != nil {
			return protocol.Link{}, err
		}
		for _, x := range blocks {
			made[x.Link] = x.Data
		}
		return blocks[len(blocks)-1].Link, nil
	}
	root, err := only(base)
	if err != nil {
		return err
	}
	is, now := base, root
	b.read = read
	defer func() { b.read = kept }()
	for _, name := range m.Merged {
		from := now
		for _, v := range l.Lineage(name) {
			e, err := fileIn(kept, v.Tree, file)
			if err != nil {
				return err
			}
			side, err := only(e)
			if err != nil {
				return err
			}
			if now, _, err = tree.ThreeWay(read, put, root, []protocol.Link{from, side}); err != nil {
				return err
			}
			if is, err = inTree(read, now, path.Base(file)); err != nil {
				return err
			}
			if err := b.version(is, api.Look{Seq: v.Seq, Time: v.Time, Step: v.Step, Phase: protocol.FilesAfter, By: []string{v.Step}}); err != nil {
				return err
			}
		}
	}
	if end, err := fileIn(kept, m.Tree, file); err != nil || !sameFile(end, is) {
		*b = before
		return err
	}
	return nil
}

// fileIn is a file of a tree that was recorded; a zero entry where it has none.
func fileIn(read tree.Read, root, file string) (tree.Entry, error) {
	l, err := protocol.ParseLink(root)
	if err != nil {
		return tree.Entry{}, err
	}
	return inTree(read, l, file)
}

func inTree(read tree.Read, root protocol.Link, file string) (tree.Entry, error) {
	if !root.Defined() {
		return tree.Entry{}, nil
	}
	e, err := tree.Find(read, root, file)
	if protocol.CodeOf(err) == protocol.ErrUnknownArtifact.Code {
		return tree.Entry{}, nil
	}
	return e, err
}

// sameFile reports whether two entries have the same mode and content.
func sameFile(a, b tree.Entry) bool { return a.Mode == b.Mode && a.Link == b.Link && a.Size == b.Size }
