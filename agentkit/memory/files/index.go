package files

import (
	"context"
	"fmt"
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

// together is how many pieces are remembered in one commit.
const together = 200

// Index remembers the files below dir in a memory. Pieces of files that are there no longer are
// removed, and no other memories.
func Index(ctx context.Context, s *memory.Store, dir string, by string) (Report, error) {
	r := Report{Skipped: []Skipped{}}
	known, err := knownPieces(ctx, s)
	if err != nil {
		return r, err
	}
	var fresh []memory.Note
	var changed []memory.Target
	origin := memory.Origin{By: by}
	flush := func() error {
		for len(fresh) > 0 {
			n := min(len(fresh), together)
			if _, err := s.Remember(ctx, fresh[:n]...); err != nil {
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
			if m, ok := known.take(f.Name, p.Text); ok {
				if *m.Place != place {
					changed = append(changed, memory.Target{ID: m.ID, Edit: memory.Edit{Place: &place}})
					r.Moved++
				}
				continue
			}
			fresh = append(fresh, memory.Note{Content: p.Text, Tags: tagsOf(f.Name), Place: &place, Origin: origin})
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
		if err := s.EditAll(ctx, some, origin); err != nil {
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

// pieces are the memories that come from files, by file and text, in the order of their lines.
type pieces map[[2]string][]memory.Memory

func knownPieces(ctx context.Context, s *memory.Store) (pieces, error) {
	var all []memory.Memory
	err := s.View(ctx, func(st *memory.State) {
		for m := range st.Newest() {
			if m.Place != nil {
				all = append(all, m)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	known := pieces{}
	for i := len(all) - 1; i >= 0; i-- {
		text, err := s.Text(ctx, all[i])
		if err != nil {
			return nil, fmt.Errorf("what is known of %s: %w", all[i].Place.File, err)
		}
		k := [2]string{all[i].Place.File, text}
		known[k] = append(known[k], all[i])
	}
	return known, nil
}

// take finds the piece with a text, and takes it out.
func (k pieces) take(file, text string) (memory.Memory, bool) {
	key := [2]string{file, strings.TrimSpace(text)}
	list := k[key]
	if len(list) == 0 {
		return memory.Memory{}, false
	}
	k[key] = list[1:]
	return list[0], true
}

// left are the pieces that were not taken, by id.
func (k pieces) left() []protocol.Seq {
	var out []protocol.Seq
	for _, list := range k {
		for _, m := range list {
			out = append(out, m.ID)
		}
	}
	slices.Sort(out)
	return out
}
