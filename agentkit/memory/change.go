package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// Origin says who makes a change, for the journal. Key is the same when a change is made again
// after a crash and distinct between changes; "" lets each count.
type Origin struct {
	By   string
	Run  protocol.RunID
	Step string
	Key  string
}

func (o Origin) data() protocol.MemoryOrigin {
	return protocol.MemoryOrigin{By: o.By, Run: o.Run, Key: o.Key}
}

// Note is what is to be remembered.
type Note struct {
	Content string
	Tags    []string
	Pinned  bool
	Place   *protocol.MemoryPlace
	Origin  Origin
}

// ErrNote is a change that cannot be made as it is asked for.
var ErrNote = &protocol.Error{Code: "memory_refused", Message: "the memory cannot be kept so", Hint: "wf memory ls lists what there is"}

// content makes a text fit to be kept: valid UTF-8, neither empty nor longer than MemoryMax.
func content(s string) (string, error) {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\ufffd"))
	switch {
	case s == "":
		return "", fmt.Errorf("the content is empty: %w", ErrNote)
	case len(s) > protocol.MemoryMax:
		return "", fmt.Errorf("the content has %d bytes, a memory holds at most %d: keep it in a file and remember where: %w", len(s), protocol.MemoryMax, ErrNote)
	}
	return s, nil
}

// Remember keeps notes, all or none of them, and gives their ids. A note whose key is known
// keeps the id it got then. Vectors are made later, when somebody asks: nothing that can fail
// stands between a note and the disk.
func (s *Store) Remember(ctx context.Context, notes ...Note) ([]protocol.Seq, error) {
	ids := make([]protocol.Seq, len(notes))
	all := make([]protocol.Remembered, len(notes))
	for i, n := range notes {
		text, err := content(n.Content)
		if err != nil {
			return nil, err
		}
		all[i] = protocol.Remembered{Content: protocol.NewText(text), Tags: cleanTags(n.Tags), Pinned: n.Pinned, Place: n.Place, MemoryOrigin: n.Origin.data()}
	}
	_, err := s.change(ctx, func(st *State) ([]Change, error) {
		var out []Change
		for i, d := range all {
			if id, known := st.keys[d.Key]; known {
				ids[i] = id
				continue
			}
			if len(out) == 0 {
				d.Model = s.firstModel(st)
			}
			out = append(out, Change{notes[i].Origin.Step, d})
			ids[i] = st.Seq + protocol.Seq(len(out))
		}
		return out, nil
	})
	return ids, err
}

// firstModel is the embedding model that a memory without one gets with what is remembered
// first. One that cannot be opened now is not written down: it may be a mistake.
func (s *Store) firstModel(st *State) string {
	if st.Model != "" {
		return ""
	}
	name, err := s.modelName(st)
	if err == nil {
		_, err = s.embedder(name)
	}
	if err != nil {
		return "" // recall tells what is wrong with it
	}
	return name
}

// Edit is a change of one memory; what is nil stays.
type Edit struct {
	Content *string
	Tags    *[]string
	Pinned  *bool
	Place   *protocol.MemoryPlace
	Remove  bool
}

// Edit changes a memory; one that is not there is an error wrapping ErrNote. What is so
// already is not written again.
func (s *Store) Edit(ctx context.Context, id protocol.Seq, e Edit, o Origin) (Memory, error) {
	var text string
	if e.Content != nil {
		var err error
		if text, err = content(*e.Content); err != nil {
			return Memory{}, err
		}
	}
	var now Memory
	_, err := s.change(ctx, func(st *State) ([]Change, error) {
		if _, known := st.keys[o.Key]; known {
			now, _ = st.Get(id)
			return nil, nil
		}
		var there bool
		if now, there = st.Get(id); !there {
			return nil, fmt.Errorf("memory %s has no memory %d: %w", s.c.Scope, id, ErrNote)
		}
		return s.edits(now, e, text, o), nil
	})
	if err != nil {
		return Memory{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, there := s.state.Get(id); there {
		now = m
	}
	return now, nil
}

// Target is an Edit of one memory of many.
type Target struct {
	ID protocol.Seq
	Edit
}

// EditAll changes many memories in one commit. Those that are not there are passed over, and a
// key in o does not count.
func (s *Store) EditAll(ctx context.Context, targets []Target, o Origin) error {
	o.Key = ""
	texts := make([]string, len(targets))
	for i, t := range targets {
		if t.Content == nil {
			continue
		}
		var err error
		if texts[i], err = content(*t.Content); err != nil {
			return err
		}
	}
	_, err := s.change(ctx, func(st *State) ([]Change, error) {
		var out []Change
		for i, t := range targets {
			if m, there := st.Get(t.ID); there {
				out = append(out, s.edits(m, t.Edit, texts[i], o)...)
			}
		}
		return out, nil
	})
	return err
}

// edits are the events that lead from m to what is wanted. Only the first of them carries the
// key: they are committed together.
func (s *Store) edits(m Memory, e Edit, text string, o Origin) []Change {
	var out []Change
	origin := o.data()
	add := func(d protocol.Data) {
		out = append(out, Change{o.Step, d})
		origin.Key = ""
	}
	if e.Remove {
		add(protocol.Removed{ID: m.ID, MemoryOrigin: origin})
		return out
	}
	edited := protocol.Edited{ID: m.ID, Content: protocol.NewText(text), MemoryOrigin: origin}
	if e.Place != nil && (m.Place == nil || *m.Place != *e.Place) {
		edited.Place = e.Place
	}
	if text != "" && text != m.Content.S || edited.Place != nil {
		add(edited)
	}
	if e.Tags != nil {
		if tags := cleanTags(*e.Tags); !slices.Equal(tags, m.Tags) {
			add(protocol.Tagged{ID: m.ID, Tags: tags, MemoryOrigin: origin})
		}
	}
	switch {
	case e.Pinned == nil || *e.Pinned == m.Pinned:
	case *e.Pinned:
		add(protocol.Pinned{ID: m.ID, MemoryOrigin: origin})
	default:
		add(protocol.Unpinned{ID: m.ID, MemoryOrigin: origin})
	}
	return out
}

// SetAnchor replaces the special memory that stands in front of all others; an empty text
// removes it.
func (s *Store) SetAnchor(ctx context.Context, text string, o Origin) error {
	text = strings.TrimSpace(text)
	if text != "" {
		var err error
		if text, err = content(text); err != nil {
			return err
		}
	}
	_, err := s.change(ctx, func(st *State) ([]Change, error) {
		old, there := st.Anchor()
		_, known := st.keys[o.Key]
		switch {
		case known || there && old.Content.S == text || !there && text == "":
			return nil, nil
		case text == "":
			return []Change{{o.Step, protocol.Removed{ID: old.ID, MemoryOrigin: o.data()}}}, nil
		}
		d := protocol.Remembered{Content: protocol.NewText(text), Pinned: true, Special: protocol.SpecialAnchor, MemoryOrigin: o.data()}
		d.Model = s.firstModel(st)
		return []Change{{o.Step, d}}, nil
	})
	return err
}
