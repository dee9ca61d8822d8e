package cas

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// Lists is what the lists of a store ask of it, of whatever kind it is.
type Lists interface {
	// Head reads a head; one that does not exist is the zero Head and no error.
	Head(ctx context.Context, name string) (Head, error)
	// Heads lists the heads with names that begin with prefix, by name.
	Heads(ctx context.Context, prefix string) ([]Head, error)
	// Newest lists the heads of all runs, the one that moved last first. Of a process
	// that has asked before, it reads and checks again only those that moved since.
	Newest(ctx context.Context) ([]Head, error)
	// Moved gives a function that names the heads which moved, came or went since it was called before, by whichever process; known is
	// false where any may have, as at the first call. One goroutine calls it.
	Moved() func(ctx context.Context) (names []string, known bool, err error)
	// Reader gives a function that reads many blocks one after another, as those of the files of a tree, and may remember what
	// lay beside one that it read. What it gives must not be changed. soon are blocks that will be asked for in this order, if that is known.
	Reader(ctx context.Context, soon ...protocol.Link) func(protocol.Link) ([]byte, error)
	DerivedReader
	// DerivedKeys lists the keys of derived values that begin with prefix, sorted, under whichever key they are sealed.
	DerivedKeys(ctx context.Context, prefix string) ([]string, error)
}

var _ Lists = (*Store)(nil)

// NewerFirst is the order of Newest.
func NewerFirst(a, b Head) int {
	return cmp.Or(cmp.Compare(b.TS, a.TS), cmp.Compare(a.Name, b.Name))
}

// Rearrange makes of the heads that Newest gave before those that it gives now. gone are those of them that went or moved, fresh those that came or moved,
// in any order. The heads before are not changed.
func Rearrange(before, gone, fresh []Head) []Head {
	if len(gone) == 0 && len(fresh) == 0 {
		return before
	}
	slices.SortFunc(gone, NewerFirst)
	slices.SortFunc(fresh, NewerFirst)
	out := make([]Head, 0, max(len(before)-len(gone)+len(fresh), 0))
	for _, h := range before {
		if len(gone) > 0 && gone[0] == h {
			gone = gone[1:]
			continue
		}
		for len(fresh) > 0 && NewerFirst(fresh[0], h) < 0 {
			out, fresh = append(out, fresh[0]), fresh[1:]
		}
		out = append(out, h)
	}
	return append(out, fresh...)
}

// Memories lists the scopes of memories there are, by name.
func Memories(ctx context.Context, s Lists) ([]string, error) {
	return named(ctx, s, protocol.MemoryHead(""))
}

// Sinks lists the sinks that have a journal, by name.
func Sinks(ctx context.Context, s Lists) ([]string, error) {
	return named(ctx, s, protocol.NotifyHead(""))
}

// named lists the heads that begin with prefix, without it.
func named(ctx context.Context, s Lists, prefix string) ([]string, error) {
	heads, err := s.Heads(ctx, prefix)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(heads))
	for i, h := range heads {
		out[i] = strings.TrimPrefix(h.Name, prefix)
	}
	return out, nil
}

// Tombstone is that of a run which was deleted; nil where none was.
func Tombstone(ctx context.Context, s Lists, run protocol.RunID) (*protocol.Tombstone, error) {
	h, err := s.Head(ctx, protocol.DeletedHead(run))
	if err != nil || !h.Link.Defined() {
		return nil, err
	}
	return tombstoneAt(s.Reader(ctx), h)
}

// Tombstones are those of all runs that were deleted, by run.
func Tombstones(ctx context.Context, s Lists) ([]protocol.Tombstone, error) {
	heads, err := s.Heads(ctx, protocol.DeletedHead(""))
	if err != nil {
		return nil, err
	}
	links := make([]protocol.Link, len(heads))
	for i, h := range heads {
		links[i] = h.Link
	}
	out, read := make([]protocol.Tombstone, len(heads)), s.Reader(ctx, links...)
	for i, h := range heads {
		t, err := tombstoneAt(read, h)
		if err != nil {
			return nil, err
		}
		out[i] = *t
	}
	return out, nil
}

func tombstoneAt(read func(protocol.Link) ([]byte, error), h Head) (*protocol.Tombstone, error) {
	data, err := read(h.Link)
	t := new(protocol.Tombstone)
	if err == nil {
		err = Decode(data, t)
	}
	if err != nil {
		return nil, fmt.Errorf("the tombstone under %s: %w", h.Name, lost(err))
	}
	return t, nil
}

// Table finds a table that this user stored; ok is false where there is none.
func Table(ctx context.Context, s DerivedReader, id protocol.RunID) (t StoredTable, ok bool, err error) {
	t.ID = id
	for prefix, data := range map[string]*[]byte{tableHeads: &t.Head, tablePrefix: &t.Data} {
		d, sealed, err := s.Derived(ctx, prefix+string(id))
		if err != nil || !sealed || len(d.Data) < 8 {
			return StoredTable{}, false, err
		}
		t.At, *data = int64(binary.BigEndian.Uint64(d.Data)), d.Data[8:]
	}
	return t, true, nil
}

// Tables lists the tables that this user stored, the one that changed last first.
func Tables(ctx context.Context, s Lists) (out []StoredTable, err error) {
	keys, err := s.DerivedKeys(ctx, tableHeads)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		d, sealed, err := s.Derived(ctx, key)
		if err != nil {
			return nil, err
		}
		if sealed && len(d.Data) >= 8 {
			out = append(out, StoredTable{ID: protocol.RunID(key[len(tableHeads):]), At: int64(binary.BigEndian.Uint64(d.Data)), Head: d.Data[8:]})
		}
	}
	slices.SortStableFunc(out, func(a, b StoredTable) int { return cmp.Compare(b.At, a.At) })
	return out, nil
}
