package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
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
	return a.atNew(ctx, func(p *target) error {
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

func (a *app) memoryEdits(ctx context.Context, m memoryFlags, ids []protocol.Seq, e api.MemoryChange, what string) error {
	return a.at(ctx, func(p *target) error {
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

func newMemoryDump(a *app, m *memoryFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "dump [FILE.json]",
		Short: "Write all of a memory as JSON, to a file or stdout",
		Example: `  wf memory dump memories.json
  wf memory dump --scope team-notes | jq '.items[].content'`,
		Args: takes(0, 1),
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error { return a.memoryDump(ctx, p, m.scope, args) }),
	}
}

// dumpJSON is what wf memory dump writes and load reads.
type dumpJSON struct {
	Schema string           `json:"schema"`
	Scope  string           `json:"scope"`
	Model  string           `json:"model,omitempty"`
	Items  []api.MemoryItem `json:"items"`
}

const dumpSchema = "wf.memory_dump/v1"

func readDump(b []byte) (dumpJSON, error) {
	var d dumpJSON
	if err := json.Unmarshal(b, &d); err != nil {
		return d, usagef("this is no dump of a memory: %v", err)
	}
	if d.Schema != dumpSchema {
		return d, usagef("this is no dump of a memory: its schema is %q, not %s", d.Schema, dumpSchema)
	}
	return d, nil
}

func (a *app) memoryDump(ctx context.Context, m api.Memory, scope string, args []string) error {
	l, err := m.Memories(ctx, api.MemoryQuery{Scope: scope, Oldest: true})
	if err != nil {
		return err
	}
	d := dumpJSON{Schema: dumpSchema, Scope: l.Scope, Model: l.Model, Items: l.Items}
	if len(args) == 0 || args[0] == "-" {
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
	if err := errors.Join(render.WriteLine(f, d), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", args[0], err)
	}
	a.Progress("wrote %s of %s to %s", many(len(d.Items), "memory", "memories"), d.Scope, args[0])
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
			return a.atNew(ctx, func(p *target) error {
				got, err := service.LoadMemories(ctx, p, m.scope, m.model, d.Items)
				if err != nil {
					return err
				}
				return a.Say(map[string]any{"schema": "wf.memory_load/v1", "scope": got.Scope, "added": got.Added, "known": got.Known},
					"remembered %s in %s, %d were known\n", many(got.Added, "memory", "memories"), render.Visible(got.Scope), got.Known)
			})
		},
	}
}
