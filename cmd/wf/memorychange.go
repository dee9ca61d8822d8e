package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

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
			n := api.Note{Tags: tags, Pinned: pin}
			if anchor {
				n.Special = protocol.SpecialAnchor
			}
			return a.memoryAdd(cmd.Context(), *m, args[0], n)
		},
	}
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "a tag it is found by")
	cmd.Flags().BoolVar(&pin, "pin", false, "pin it")
	cmd.Flags().BoolVar(&anchor, "anchor", false, "make it the special memory that stands in front of all others")
	return cmd
}

func (a *app) memoryAdd(ctx context.Context, m memoryFlags, arg string, n api.Note) (err error) {
	if n.Content, err = a.contentArgument(arg); err != nil {
		return err
	}
	return a.inMemory(ctx, true, func(p *target) error {
		got, err := p.Remember(ctx, api.Remember{Scope: m.scope, Model: m.model, Notes: []api.Note{n}})
		if err != nil {
			return err
		}
		if a.AsJSON() {
			one, err := p.Memory(ctx, got.Scope, got.IDs[0])
			if err != nil {
				return err
			}
			return a.Answer(one)
		}
		what := "remembered as"
		if n.Special != "" {
			what = "the anchor is"
		}
		_, err = fmt.Fprintf(a.Out, "%s %d in %s\n", what, got.IDs[0], render.Visible(got.Scope))
		return err
	})
}

// memoryEdits changes memories by id.
func (a *app) memoryEdits(ctx context.Context, m memoryFlags, ids []protocol.Seq, e api.MemoryChange, what string) error {
	return a.inMemory(ctx, false, func(p *target) error {
		c := api.MemoryChanges{Scope: m.scope}
		var named []string
		for _, id := range ids {
			e.ID = id
			c.Changes, named = append(c.Changes, e), append(named, fmt.Sprint(id))
		}
		got, err := p.ChangeMemories(ctx, c)
		if err != nil {
			return err
		}
		return a.Say(got, "%s %s in %s\n", what, strings.Join(named, ", "), render.Visible(got.Scope))
	})
}

func newMemoryRm(a *app, m *memoryFlags) *cobra.Command {
	cmd := memoryByID(a, m, "rm ID...", "Forget memories; their history stays in the journal", "  wf memory rm 12", "removed", api.MemoryChange{Remove: true})
	cmd.Aliases = []string{"forget"}
	return cmd
}

func memoryByID(a *app, m *memoryFlags, use, short, example, what string, e api.MemoryChange) *cobra.Command {
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
			return a.memoryEdits(cmd.Context(), *m, ids, api.MemoryChange{Tags: &tags}, "tagged")
		},
	}
}
