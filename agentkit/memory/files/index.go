package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"path"
	"slices"
	"strings"

	"wf/agentkit/memory"
	"wf/protocol"
)

// Report is what an indexing did.
type Report struct {
	Files   int       `json:"files"`
	Pieces  int       `json:"pieces"`
	Added   int       `json:"added"`
	Moved   int       `json:"moved"` // same text, other lines
	Removed int       `json:"removed"`
	Skipped []Skipped `json:"skipped"`
}

// A Memory is where pieces are kept.
type Memory interface {
	// Placed are the memories that come from files.
	Placed(ctx context.Context) ([]Placed, error)
	// Remember adds notes, all or none of them.
	Remember(ctx context.Context, notes []memory.Note) error
	// Edit changes memories.
	Edit(ctx context.Context, targets []memory.Target) error
}

// Placed is a memory that comes from a file, with the sha256 of its text.
type Placed struct {
	ID    protocol.Seq
	Place protocol.MemoryPlace
	Sum   [sha256.Size]byte
}

// together is how many pieces are remembered in one commit.
const together = 200

// Index remembers the files below dir in a memory. Pieces of files that are there no
// longer are removed, and no other memories. It tells progress, if it is not nil, how many
// files and pieces were read, file by file.
func Index(ctx context.Context, m Memory, dir string, progress func(files, pieces int)) (Report, error) {
	r := Report{Skipped: []Skipped{}}
	known, err := knownPieces(ctx, m)
	if err != nil {
		return r, err
	}
	var fresh []memory.Note
	var changed []memory.Target
	flush := func() error {
		for len(fresh) > 0 {
			n := min(len(fresh), together)
			if err := m.Remember(ctx, fresh[:n]); err != nil {
				return err
			}
			r.Added += n
			fresh = fresh[n:]
		}
		return nil
	}
	skipped, err := Walk(ctx, dir, func(f File) error {
		r.Files++
		for _, p := range Pieces(f) {
			r.Pieces++
			place := protocol.MemoryPlace{File: f.Name, Line: p.Line, End: p.End}
			text := memory.Kept(p.Text)
			if old, ok := known.take(f.Name, text); ok {
				if old.Place != place {
					changed = append(changed, memory.Target{ID: old.ID, Edit: memory.Edit{Place: &place}})
					r.Moved++
				}
				continue
			}
			fresh = append(fresh, memory.Note{Content: text, Tags: tagsOf(f.Name), Place: &place})
		}
		if progress != nil {
			progress(r.Files, r.Pieces)
		}
		if len(fresh) >= together {
			return flush()
		}
		return nil
	})
	r.Skipped = append(r.Skipped, skipped...)
	if err != nil {
		return r, err
	}
	if err := flush(); err != nil {
		return r, err
	}
	for _, id := range known.left() {
		changed = append(changed, memory.Target{ID: id, Edit: memory.Edit{Remove: true}})
		r.Removed++
	}
	for some := range slices.Chunk(changed, together) {
		if err := m.Edit(ctx, some); err != nil {
			return r, err
		}
	}
	return r, nil
}

func tagsOf(name string) []string {
	tags := []string{Tag}
	if ext := strings.TrimPrefix(path.Ext(name), "."); ext != "" {
		tags = append(tags, ext)
	}
	return tags
}

// pieces are the memories that come from files, in the order of their lines. Their texts are
// not read: those of a large tree would fill the memory of the machine.
type pieces map[piece][]Placed

// piece is a file and the sum of a text in it.
type piece struct {
	file string
	text [sha256.Size]byte
}

func knownPieces(ctx context.Context, m Memory) (pieces, error) {
	known := pieces{}
	list, err := m.Placed(ctx)
	slices.SortFunc(list, func(a, b Placed) int { return cmp.Compare(a.ID, b.ID) })
	for _, x := range list {
		k := piece{x.Place.File, x.Sum}
		known[k] = append(known[k], x)
	}
	return known, err
}

// take finds the piece with a text, and takes it out.
func (k pieces) take(file, text string) (Placed, bool) {
	key := piece{file, sha256.Sum256([]byte(text))}
	list := k[key]
	if len(list) == 0 {
		return Placed{}, false
	}
	if k[key] = list[1:]; len(list) == 1 {
		delete(k, key)
	}
	return list[0], true
}

// left are the pieces that were not taken, by id.
func (k pieces) left() []protocol.Seq {
	var out []protocol.Seq
	for _, list := range k {
		for _, x := range list {
			out = append(out, x.ID)
		}
	}
	slices.Sort(out)
	return out
}
