package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/service"
	"wf/service/compose"
)

func newMemoryDump(a *app, m *memoryFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "dump [FILE.json]",
		Short: "Write all of a memory as JSON, to a file or stdout",
		Example: `  wf memory dump memories.json
  wf memory dump --scope team-notes | jq '.items[].content'`,
		Args: takes(0, 1),
		RunE: a.ofMemory(func(ctx context.Context, p *target, args []string) error { return a.memoryDump(ctx, p, m.scope, args) }),
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
			return a.inMemory(ctx, true, func(p *target) error { return a.memoryLoad(ctx, p, *m, d) })
		},
	}
}

// loadedJSON is wf.memory_load/v1.
type loadedJSON struct {
	Added  int    `json:"added"`
	Known  int    `json:"known"`
	Schema string `json:"schema"`
	Scope  string `json:"scope"`
}

func (a *app) memoryLoad(ctx context.Context, p *target, m memoryFlags, d dumpJSON) error {
	got, err := service.LoadMemories(ctx, p, m.scope, m.model, d.Items)
	if err != nil {
		return err
	}
	return a.Say(loadedJSON{got.Added, got.Known, "wf.memory_load/v1", got.Scope},
		"remembered %s in %s, %d were known\n", many(got.Added, "memory", "memories"), render.Visible(got.Scope), got.Known)
}
