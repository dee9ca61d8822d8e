package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"wf/agentkit/memory"
	"wf/cas"
	"wf/cmd/internal/render"
	"wf/protocol"
)

func newMemory(a *app) *cobra.Command {
	var f memoryFlags
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Look at what agents remember, and change it",
		Long: `What agents remember beyond a run: a role with memory: true has its own, others are shared by a
workflow, a user or under a name. Each is a journal in the store: a removed memory is no longer
found, its history stays.`,
		Example: `  wf memory add "The deploy key lives in the vault." --tag deploy --pin
  wf memory search "where is the key?"
  wf memory ls --scope role/fix-bug/coder`,
		Args: known,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.scope, "scope", "", "which memory: user (default), role/WORKFLOW/ROLE, workflow/WORKFLOW or a name")
	flags.StringVar(&f.model, "model", "", "embedding model (default: the one the memory has, else lexical/ngrams-1)")
	cmd.AddCommand(newMemoryLs(a, &f), newMemoryAdd(a, &f), newMemorySearch(a, &f), newMemoryPin(a, &f), newMemoryUnpin(a, &f),
		newMemoryTag(a, &f), newMemoryRm(a, &f), newMemoryDump(a, &f), newMemoryLoad(a, &f), newMemoryReindex(a, &f), newMemoryIndex(a, &f))
	return cmd
}

// memoryJSON is a memory as programs see it.
type memoryJSON struct {
	ID       protocol.Seq          `json:"id"`
	Content  string                `json:"content"`
	Tags     []string              `json:"tags"`
	Pinned   bool                  `json:"pinned"`
	Special  string                `json:"special,omitempty"`
	Place    *protocol.MemoryPlace `json:"place,omitempty"`
	Distance *float64              `json:"distance,omitempty"`
	At       string                `json:"at"`
	Changed  string                `json:"changed"`
	By       string                `json:"by,omitempty"`
	Run      protocol.RunID        `json:"run,omitempty"`
	Step     string                `json:"step,omitempty"`
}

func shownMemory(ctx context.Context, s *memory.Store, h memory.Hit) (memoryJSON, error) {
	text, err := s.Text(ctx, h.Memory)
	return memoryJSON{ID: h.ID, Content: text, Tags: nonNil(h.Tags), Pinned: h.Pinned, Special: h.Special, Place: h.Place, Distance: h.Distance,
		At: render.TimeText(h.At), Changed: render.TimeText(h.Changed), By: h.By, Run: h.Run, Step: h.Step}, err
}

func shownMemories(ctx context.Context, s *memory.Store, hits []memory.Hit) ([]memoryJSON, error) {
	out := make([]memoryJSON, len(hits))
	for i, h := range hits {
		var err error
		if out[i], err = shownMemory(ctx, s, h); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// listMemories writes memories: an object, a line for each, or for people.
func (a *app) listMemories(schema string, scope string, items []memoryJSON, more map[string]any) error {
	switch a.Format {
	case "json":
		answer := map[string]any{"schema": schema, "scope": scope, "items": items}
		for k, v := range more {
			answer[k] = v
		}
		return a.Answer(answer)
	case "jsonl":
		for _, m := range items {
			if err := render.WriteLine(a.Out, m); err != nil {
				return err
			}
		}
		return nil
	}
	p := a.Out.Paint()
	var rows [][]string
	for _, m := range items {
		var notes []string
		if m.Special != "" {
			notes = append(notes, m.Special)
		} else if m.Pinned {
			notes = append(notes, "pinned")
		}
		if m.Place != nil {
			notes = append(notes, render.Visible(memory.PlaceText(*m.Place)))
		}
		far := ""
		if m.Distance != nil {
			far = fmt.Sprintf("%.3f", *m.Distance)
		}
		rows = append(rows, []string{p.Bold(fmt.Sprint(m.ID)), far, render.Age(m.At), strings.Join(notes, " "), render.Visible(memory.TagList(m.Tags)), render.OneLine(m.Content, 80)})
	}
	return render.Table(a.Out, withoutEmpty(rows))
}

// withoutEmpty drops columns in which no row holds anything.
func withoutEmpty(rows [][]string) [][]string {
	if len(rows) == 0 {
		return rows
	}
	var out [][]string
	for _, row := range rows {
		var kept []string
		for i, cell := range row {
			if slices.ContainsFunc(rows, func(r []string) bool { return r[i] != "" }) {
				kept = append(kept, cell)
			}
		}
		out = append(out, kept)
	}
	return out
}

type memoryListFlags struct {
	tags   []string
	all    bool
	pinned bool
	limit  int
	scopes bool
}

func tagFlags(cmd *cobra.Command, tags *[]string, all *bool) {
	cmd.Flags().StringArrayVar(tags, "tag", nil, "only memories with this tag; several: one of them")
	cmd.Flags().BoolVar(all, "all-tags", false, "only memories with all of the tags")
}

func modeFor(all bool) memory.Mode {
	if all {
		return memory.All
	}
	return memory.Any
}

func newMemoryLs(a *app, m *memoryFlags) *cobra.Command {
	var f memoryListFlags
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List memories, the pinned ones first, then the newest",
		Example: `  wf memory ls
  wf memory ls --scopes
  wf memory ls --scope role/fix-bug/coder --tag deploy -o json`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.scopes {
				return a.memoryScopes(cmd.Context())
			}
			return a.memoryLs(cmd.Context(), *m, f)
		},
	}
	tagFlags(cmd, &f.tags, &f.all)
	cmd.Flags().BoolVar(&f.pinned, "pinned", false, "only pinned ones")
	cmd.Flags().IntVarP(&f.limit, "limit", "n", 50, "at most this many, 0 is all")
	cmd.Flags().BoolVar(&f.scopes, "scopes", false, "list the memories there are instead of what one holds")
	return cmd
}

func (a *app) memoryLs(ctx context.Context, m memoryFlags, f memoryListFlags) error {
	if missing, err := a.NoStoreYet(); err != nil || missing {
		if err == nil {
			err = a.listMemories("wf.memories/v1", m.name(), []memoryJSON{}, nil)
		}
		return err
	}
	return a.withMemory(ctx, m, false, func(s *cas.Store, store *memory.Store) error {
		var hits []memory.Hit
		err := store.View(ctx, func(st *memory.State) { hits = f.pick(st) })
		if err != nil {
			return err
		}
		items, err := shownMemories(ctx, store, hits)
		if err == nil && len(items) == 0 && !a.AsJSON() {
			err = a.tellOthers(ctx, s, store.Scope())
		}
		if err != nil {
			return err
		}
		return a.listMemories("wf.memories/v1", store.Scope(), items, nil)
	})
}

// pick lists the memories that are wanted: the anchor, the pinned ones, then the newest.
func (f memoryListFlags) pick(st *memory.State) []memory.Hit {
	var first, then []memory.Hit
	tagged := map[protocol.Seq]bool{}
	for _, m := range st.ContextFor(f.tags, modeFor(f.all), st.Len()) {
		tagged[m.ID] = true
	}
	if a, ok := st.Anchor(); ok {
		first = append(first, memory.Hit{Memory: a})
	}
	for _, m := range st.Pins() {
		first = append(first, memory.Hit{Memory: m})
	}
	for m := range st.Newest() {
		if !m.Pinned && m.Special == "" && !f.pinned {
			then = append(then, memory.Hit{Memory: m})
		}
	}
	hits := append(first, then...)
	if len(f.tags) > 0 {
		hits = slices.DeleteFunc(hits, func(h memory.Hit) bool { return !tagged[h.ID] })
	}
	if f.limit > 0 && len(hits) > f.limit {
		hits = hits[:f.limit]
	}
	return hits
}

// scopeJSON is a memory among others.
type scopeJSON struct {
	Scope    string       `json:"scope"`
	Memories int          `json:"memories"`
	Pinned   int          `json:"pinned"`
	Model    string       `json:"model"`
	Head     string       `json:"head"`
	Seq      protocol.Seq `json:"seq"`
}

func (a *app) memoryScopes(ctx context.Context) error {
	return a.WithStore(ctx, func(s *cas.Store) error {
		scopes, err := s.Memories(ctx)
		if err != nil {
			return err
		}
		items := []scopeJSON{}
		for _, scope := range scopes {
			store, err := a.OpenMemory(ctx, s, scope, "")
			if err != nil {
				return err
			}
			err = store.View(ctx, func(st *memory.State) {
				items = append(items, scopeJSON{scope, st.Len(), len(st.Pins()), st.Model, st.Head.String(), st.Seq})
			})
			if err != nil {
				return err
			}
		}
		if a.AsJSON() {
			return a.Answer(map[string]any{"schema": "wf.memory_scopes/v1", "items": items})
		}
		rows := [][]string{{"SCOPE", "MEMORIES", "PINNED", "MODEL"}}
		for _, x := range items {
			rows = append(rows, []string{render.Visible(x.Scope), fmt.Sprint(x.Memories), fmt.Sprint(x.Pinned), render.Visible(x.Model)})
		}
		return render.Table(a.Out, rows)
	})
}

// memoryIDs reads ids as they are shown: 12, or id:12.
func memoryIDs(args []string) ([]protocol.Seq, error) {
	out := make([]protocol.Seq, len(args))
	for i, arg := range args {
		n, err := strconv.ParseInt(strings.TrimPrefix(arg, "id:"), 10, 64)
		if err != nil || n < 1 {
			return nil, usagef("%q is no id of a memory; wf memory ls shows them", arg)
		}
		out[i] = protocol.Seq(n)
	}
	return out, nil
}

// contentArgument is a text of the command line; - is stdin.
func (a *app) contentArgument(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	const most = protocol.MemoryMax + 1<<10 // with some space around it
	b, err := io.ReadAll(io.LimitReader(a.in, most))
	switch {
	case err != nil:
		return "", fmt.Errorf("stdin: %w", err)
	case len(b) == most:
		return "", fail(memory.ErrNote, "keep it in a file, and remember where it lies", "stdin holds more than %d bytes, the most that a memory holds", protocol.MemoryMax)
	}
	return string(b), nil
}

// dumpJSON is what wf memory dump writes and load reads.
type dumpJSON struct {
	Schema string       `json:"schema"`
	Scope  string       `json:"scope"`
	Model  string       `json:"model,omitempty"`
	Items  []memoryJSON `json:"items"`
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
