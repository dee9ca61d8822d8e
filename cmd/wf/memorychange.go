package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/agentkit/memory"
	"wf/cas"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/service/compose"
)

// byUser is who changes a memory at the command line.
func byUser() memory.Origin { return memory.Origin{By: compose.User()} }

func newMemoryAdd(a *app, m *memoryFlags) *cobra.Command {
	var tags []string
	var pin, anchor bool
	cmd := &cobra.Command{
		Use:   "add TEXT",
		Short: "Remember something",
		Long:  "Remember something. - reads it from stdin. It is found by its meaning and by its tags; pinned, it is there at the\nstart of every new conversation.",
		Example: `  wf memory add "Releases are cut on Tuesdays." --tag release
  git log -1 --format=%B | wf memory add - --tag decisions
  wf memory add "You are the keeper of this project." --anchor`,
		Args: takes(1, 1, "a text"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if anchor && (pin || len(tags) > 0) {
				return usagef("the anchor memory has no tags and is always pinned: give --anchor alone")
			}
			return a.memoryAdd(cmd.Context(), *m, args[0], memory.Note{Tags: tags, Pinned: pin, Origin: byUser()}, anchor)
		},
	}
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "a tag it is found by")
	cmd.Flags().BoolVar(&pin, "pin", false, "pin it")
	cmd.Flags().BoolVar(&anchor, "anchor", false, "make it the special memory that stands in front of all others")
	return cmd
}

func (a *app) memoryAdd(ctx context.Context, m memoryFlags, arg string, n memory.Note, anchor bool) error {
	text, err := a.contentArgument(arg)
	if err != nil {
		return err
	}
	return a.withMemory(ctx, m, true, func(_ *cas.Store, s *memory.Store) error {
		if anchor {
			if err := s.SetAnchor(ctx, text, n.Origin); err != nil {
				return err
			}
			var id protocol.Seq
			err := s.View(ctx, func(st *memory.State) {
				a, _ := st.Anchor()
				id = a.ID
			})
			if err != nil {
				return err
			}
			return a.tellMemory(ctx, s, id, "the anchor is")
		}
		n.Content = text
		ids, err := s.Remember(ctx, n)
		if err != nil {
			return err
		}
		return a.tellMemory(ctx, s, ids[0], "remembered as")
	})
}

// tellMemory shows a memory after a change.
func (a *app) tellMemory(ctx context.Context, s *memory.Store, id protocol.Seq, what string) error {
	if !a.AsJSON() {
		_, err := fmt.Fprintf(a.Out, "%s %d in %s\n", what, id, render.Visible(s.Scope()))
		return err
	}
	m, _, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	shown, err := shownMemory(ctx, s, memory.Hit{Memory: m})
	if err != nil {
		return err
	}
	head, seq := s.Head()
	return a.Answer(map[string]any{"schema": "wf.memory/v1", "scope": s.Scope(), "memory": shown, "head": head.String(), "seq": seq})
}

// memoryEdits changes memories by id.
func (a *app) memoryEdits(ctx context.Context, m memoryFlags, ids []protocol.Seq, e memory.Edit, what string) error {
	return a.withMemory(ctx, m, false, func(_ *cas.Store, s *memory.Store) error {
		for _, id := range ids { // all of them, or none
			if _, there, err := s.Get(ctx, id); err != nil {
				return err
			} else if !there {
				return memory.NoMemory(s.Scope(), id)
			}
		}
		targets := make([]memory.Target, len(ids))
		for i, id := range ids {
			targets[i] = memory.Target{ID: id, Edit: e}
		}
		if err := s.EditAll(ctx, targets, byUser()); err != nil {
			return err
		}
		if a.AsJSON() {
			head, seq := s.Head()
			return a.Answer(map[string]any{"schema": "wf.memory_changed/v1", "scope": s.Scope(), "ids": ids, "head": head.String(), "seq": seq})
		}
		_, err := fmt.Fprintf(a.Out, "%s %s in %s\n", what, joinIDs(ids), render.Visible(s.Scope()))
		return err
	})
}

func joinIDs(ids []protocol.Seq) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = fmt.Sprint(id)
	}
	return strings.Join(out, ", ")
}

func newMemoryPin(a *app, m *memoryFlags) *cobra.Command {
	return memoryByID(a, m, "pin ID...", "Put memories at the start of every new conversation", "  wf memory pin 12", "pinned", memory.Edit{Pinned: new(true)})
}

func newMemoryUnpin(a *app, m *memoryFlags) *cobra.Command {
	return memoryByID(a, m, "unpin ID...", "Take that back", "  wf memory unpin 12 14", "unpinned", memory.Edit{Pinned: new(false)})
}

func newMemoryRm(a *app, m *memoryFlags) *cobra.Command {
	cmd := memoryByID(a, m, "rm ID...", "Forget memories; their history stays in the journal", "  wf memory rm 12", "removed", memory.Edit{Remove: true})
	cmd.Aliases = []string{"forget"}
	return cmd
}

func memoryByID(a *app, m *memoryFlags, use, short, example, what string, e memory.Edit) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: takes(1, -1, "the id of a memory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := memoryIDs(args)
			if err != nil {
				return err
			}
			return a.memoryEdits(cmd.Context(), *m, ids, e, what)
		},
	}
}

func newMemoryTag(a *app, m *memoryFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "tag ID [TAG...]",
		Short: "Replace the tags of a memory; without tags it has none",
		Example: `  wf memory tag 12 deploy "keys, secrets"
  wf memory tag 12`,
		Args: takes(1, -1, "the id of a memory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := memoryIDs(args[:1])
			if err != nil {
				return err
			}
			tags := args[1:]
			return a.memoryEdits(cmd.Context(), *m, ids, memory.Edit{Tags: &tags}, "tagged")
		},
	}
}

func newMemoryDump(a *app, m *memoryFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "dump [FILE.json]",
		Short: "Write all of a memory as JSON, to a file or stdout",
		Example: `  wf memory dump memories.json
  wf memory dump --scope team-notes | jq '.items[].content'`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withMemory(ctx, *m, false, func(_ *cas.Store, s *memory.Store) error { return a.memoryDump(ctx, s, args) })
		},
	}
}

func (a *app) memoryDump(ctx context.Context, s *memory.Store, args []string) error {
	d := dumpJSON{Schema: dumpSchema, Scope: s.Scope()}
	var hits []memory.Hit
	err := s.View(ctx, func(st *memory.State) {
		d.Model = st.Model
		for m := range st.Newest() {
			hits = append(hits, memory.Hit{Memory: m})
		}
	})
	if err != nil {
		return err
	}
	slices.Reverse(hits)
	if d.Items, err = shownMemories(ctx, s, hits); err != nil {
		return err
	}
	if len(args) == 0 || args[0] == "-" {
		if a.Format == "human" {
			a.Format = "json"
		}
		return a.Answer(d)
	}
	to, err := compose.OutFile(args[0])
	if err != nil {
		return err
	}
	defer to.Close()
	f, err := to.Open(os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := render.WriteLine(f, d); err != nil {
		_ = f.Close() // the error of the write says more
		return fmt.Errorf("write %s: %w", args[0], err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", args[0], err)
	}
	a.Progress("wrote %s of %s to %s", many(len(d.Items), "memory", "memories"), s.Scope(), args[0])
	return nil
}

func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func newMemoryLoad(a *app, m *memoryFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "load FILE.json",
		Short: "Remember what a dump holds and the memory does not",
		Long:  "Remember what a dump holds and the memory does not. Memories get new ids; those that are there already, with the same\ntext and tags, are passed over. - reads stdin.",
		Example: `  wf memory load memories.json
  wf memory dump --scope a | wf memory load - --scope b`,
		Args: takes(1, 1, "a dump"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			b, err := a.readArgument(args[0])
			if err != nil {
				return usagef("%v", err)
			}
			d, err := readDump(b)
			if err != nil {
				return err
			}
			return a.withMemory(ctx, *m, true, func(_ *cas.Store, s *memory.Store) error { return a.memoryLoad(ctx, s, d) })
		},
	}
}

// loadKey is the same for what a load takes for the same memory: text, tags, and the place.
func loadKey(sum [sha256.Size]byte, tags []string, place *protocol.MemoryPlace) string {
	if place == nil {
		place = &protocol.MemoryPlace{}
	}
	return memory.KeyOf(append([]string{string(sum[:]), place.File, fmt.Sprint(place.Line, place.End)}, tags...)...)
}

// loadTogether is how many memories of a dump are remembered in one commit.
const loadTogether = 500

func (a *app) memoryLoad(ctx context.Context, s *memory.Store, d dumpJSON) error {
	known := map[string]bool{}
	anchored := false
	err := s.View(ctx, func(st *memory.State) {
		for m := range st.Newest() {
			known[loadKey(m.Sum(), m.Tags, m.Place)] = true
		}
		_, anchored = st.Anchor()
	})
	if err != nil {
		return err
	}
	var notes []memory.Note
	added := 0
	for i, m := range d.Items {
		n, err := memory.Note{Content: m.Content, Tags: m.Tags, Pinned: m.Pinned, Place: m.Place, Origin: byUser()}.Kept()
		if err != nil {
			return fmt.Errorf("item %d of the dump, id %d: %w", i+1, m.ID, err)
		}
		key := loadKey(sha256.Sum256([]byte(n.Content)), n.Tags, n.Place)
		switch {
		case m.Special == protocol.SpecialAnchor && !anchored:
			if err := s.SetAnchor(ctx, n.Content, byUser()); err != nil {
				return err
			}
			anchored = true
			added++
		case m.Special == "" && !known[key]:
			known[key] = true
			notes = append(notes, n)
		}
	}
	for some := range slices.Chunk(notes, loadTogether) {
		if _, err := s.Remember(ctx, some...); err != nil {
			return err
		}
	}
	added += len(notes)
	if a.AsJSON() {
		return a.Answer(map[string]any{"schema": "wf.memory_load/v1", "scope": s.Scope(), "added": added, "known": len(d.Items) - added})
	}
	_, err = fmt.Fprintf(a.Out, "remembered %s in %s, %d were known\n", many(added, "memory", "memories"), render.Visible(s.Scope()), len(d.Items)-added)
	return err
}
