package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
	"wf/roles"
)

// Origin is the author of a change, for the journal. Key is the same when a change is made again
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

// refused is a change or a question that a memory does not take as it is put: an ErrMemory that says why;
// hint, for people, may be "".
func refused(hint, format string, args ...any) error {
	return protocol.ErrMemory.With(hint, format, args...)
}

// NoMemory is the ErrMemory of an id that a scope has not.
func NoMemory(scope string, id protocol.Seq) error {
	return refused("wf memory ls --scope "+protocol.ShellWord(scope)+" lists what there is", "memory %s has no memory %d", scope, id)
}

// Kept is a text as a memory keeps it: valid UTF-8, no space around it, and what has the shape
// of a key replaced by [redacted:KIND].
func Kept(s string) string {
	return new(roles.Redactor).String(strings.TrimSpace(strings.ToValidUTF8(s, "\ufffd")))
}

// content makes a text fit to be kept, neither empty nor longer than MemoryMax.
func content(s string) (string, error) {
	s = Kept(s)
	switch {
	case s == "":
		return "", refused("", "the content is empty")
	case len(s) > protocol.MemoryMax:
		return "", refused("keep it in a file, and remember where it lies", "a text of %d bytes is too long: a memory holds at most %d", len(s), protocol.MemoryMax)
	}
	return s, nil
}

// Kept is n as a memory keeps it, or an ErrMemory where it cannot.
func (n Note) Kept() (Note, error) {
	var err error
	if n.Content, err = content(n.Content); err == nil {
		n.Tags, err = keptTags(n.Tags)
	}
	return n, err
}

// Remember keeps notes, all or none of them, and gives their ids. A note with a known key
// keeps the id it got then. Vectors are made later, when somebody asks: nothing that can fail
// stands between a note and the disk.
func (s *Store) Remember(ctx context.Context, notes ...Note) ([]protocol.Seq, error) {
	ids := make([]protocol.Seq, len(notes))
	all := make([]protocol.Remembered, len(notes))
	for i, n := range notes {
		n, err := n.Kept()
		if err != nil {
			return nil, err
		}
		all[i] = protocol.Remembered{Content: protocol.NewText(n.Content), Tags: n.Tags, Pinned: n.Pinned, Place: n.Place, MemoryOrigin: n.Origin.data()}
	}
	err := s.change(ctx, func(st *State) ([]Change, error) {
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

// Edit changes a memory; one that is not there is an error wrapping protocol.ErrMemory. What is so
// already is not written again.
func (s *Store) Edit(ctx context.Context, id protocol.Seq, e Edit, o Origin) (Memory, error) {
	e, err := e.kept()
	if err != nil {
		return Memory{}, err
	}
	var now Memory
	err = s.change(ctx, func(st *State) ([]Change, error) {
		if _, known := st.keys[o.Key]; known {
			now, _ = st.Get(id)
			return nil, nil
		}
		var there bool
		if now, there = st.Get(id); !there {
			return nil, NoMemory(s.c.Scope, id)
		}
		return edits(now, e, o)
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
	targets = slices.Clone(targets)
	for i, t := range targets {
		var err error
		if targets[i].Edit, err = t.kept(); err != nil {
			return err
		}
	}
	return s.change(ctx, func(st *State) (out []Change, err error) {
		for _, t := range targets {
			if m, there := st.Get(t.ID); there {
				some, err := edits(m, t.Edit, o)
				if err != nil {
					return nil, err
				}
				out = append(out, some...)
			}
		}
		return out, nil
	})
}

// kept is e with its texts as a memory keeps them.
func (e Edit) kept() (Edit, error) {
	if e.Content != nil {
		text, err := content(*e.Content)
		if err != nil {
			return e, err
		}
		e.Content = &text
	}
	if e.Tags != nil {
		tags, err := keptTags(*e.Tags)
		if err != nil {
			return e, err
		}
		e.Tags = &tags
	}
	return e, nil
}

// edits are the events that lead from m to what is wanted. Only the first of them carries the
// key: they are committed together.
func edits(m Memory, e Edit, o Origin) (out []Change, err error) {
	origin := o.data()
	add := func(d protocol.Data) {
		out = append(out, Change{o.Step, d})
		origin.Key = ""
	}
	if e.Remove {
		add(protocol.Removed{ID: m.ID, MemoryOrigin: origin})
		return out, nil
	}
	if m.Special != "" && (e.Tags != nil && len(*e.Tags) > 0 || e.Pinned != nil && !*e.Pinned) {
		return nil, refused(fmt.Sprintf("wf memory rm %d removes it", m.ID), "memory %d is the anchor: it has no tags and is always pinned", m.ID)
	}
	edited := protocol.Edited{ID: m.ID, MemoryOrigin: origin}
	if e.Content != nil && sumOf(*e.Content) != m.Sum() {
		edited.Content = protocol.NewText(*e.Content)
	}
	if e.Place != nil && (m.Place == nil || *m.Place != *e.Place) {
		edited.Place = e.Place
	}
	if !edited.Content.Empty() || edited.Place != nil {
		add(edited)
	}
	if e.Tags != nil && !slices.Equal(*e.Tags, m.Tags) {
		add(protocol.Tagged{ID: m.ID, Tags: *e.Tags, MemoryOrigin: origin})
	}
	switch {
	case e.Pinned == nil || *e.Pinned == m.Pinned:
	case *e.Pinned:
		add(protocol.Pinned{ID: m.ID, MemoryOrigin: origin})
	default:
		add(protocol.Unpinned{ID: m.ID, MemoryOrigin: origin})
	}
	return out, nil
}

// SetAnchor replaces the special memory that is placed before all others; an empty text
// removes it.
func (s *Store) SetAnchor(ctx context.Context, text string, o Origin) error {
	text = strings.TrimSpace(text)
	if text != "" {
		var err error
		if text, err = content(text); err != nil {
			return err
		}
	}
	return s.change(ctx, func(st *State) ([]Change, error) {
		old, there := st.Anchor()
		_, known := st.keys[o.Key]
		switch {
		case known || there && old.Sum() == sumOf(text) || !there && text == "":
			return nil, nil
		case text == "":
			return []Change{{o.Step, protocol.Removed{ID: old.ID, MemoryOrigin: o.data()}}}, nil
		}
		d := protocol.Remembered{Content: protocol.NewText(text), Pinned: true, Special: protocol.SpecialAnchor, MemoryOrigin: o.data()}
		d.Model = s.firstModel(st)
		return []Change{{o.Step, d}}, nil
	})
}
