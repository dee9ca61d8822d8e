package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"wf/agentkit/memory"
	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/service/compose"
)

func newMemory(a *app) *cobra.Command {
	var f memoryFlags
	cmd := group(&cobra.Command{
		Use:   "memory",
		Short: "Look at what agents remember, and change it",
		Long: `What agents remember beyond a run: a role with memory: true has its own, others are shared by a
workflow, a user or under a name. Each is a journal in the store: a removed memory is no longer
found, its history stays.`,
		Example: `  wf memory add "The deploy key lives in the vault." --tag deploy --pin
  wf memory search "where is the key?"
  wf memory ls --scope role/fix-bug/coder`,
	}, newMemoryLs(a, &f), newMemoryAdd(a, &f), newMemorySearch(a, &f),
		memoryByID(a, &f, "pin ID...", "Put memories at the start of every new conversation", "  wf memory pin 12", "pinned", api.MemoryChange{Pinned: new(true)}),
		memoryByID(a, &f, "unpin ID...", "Take that back", "  wf memory unpin 12 14", "unpinned", api.MemoryChange{Pinned: new(false)}),
		newMemoryTag(a, &f), newMemoryRm(a, &f), newMemoryDump(a, &f), newMemoryLoad(a, &f), newMemoryReindex(a, &f), newMemoryIndex(a, &f))
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.scope, "scope", "", "which memory: user (default), role/WORKFLOW/ROLE, workflow/WORKFLOW or a name")
	flags.StringVar(&a.worker, "worker", "", "id of the worker whose memories are meant, at a hub that has several")
	flags.StringVar(&f.model, "model", "", "embedding model (default: the one the memory has, else lexical/ngrams-1)")
	return cmd
}

// listMemories writes memories: as the answer says, a line for each, or for people.
func (a *app) listMemories(answer any, items []api.MemoryItem) error {
	if a.AsJSON() {
		return render.AnswerAll(a.Printer, answer, items)
	}
	var rows [][]string
	for _, m := range items {
		var notes []string
		if m.Special != "" {
			notes = append(notes, render.Visible(m.Special))
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
		rows = append(rows, []string{a.Out.Bold(fmt.Sprint(m.ID)), far, render.Age(m.At), strings.Join(notes, " "), render.Visible(memory.TagList(m.Tags)), render.OneLine(m.Content, 80)})
	}
	return render.Table(a.Out, withoutEmpty(rows))
}

// withoutEmpty drops columns in which no row holds anything.
func withoutEmpty(rows [][]string) [][]string {
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

func tagFlags(cmd *cobra.Command, tags *[]string, all *bool) {
	cmd.Flags().StringArrayVar(tags, "tag", nil, "only memories with this tag; several: one of them")
	cmd.Flags().BoolVar(all, "all-tags", false, "only memories with all of the tags")
}

func newMemoryLs(a *app, m *memoryFlags) *cobra.Command {
	var q api.MemoryQuery
	var scopes bool
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List memories, the pinned ones first, then the newest",
		Example: `  wf memory ls
  wf memory ls --scopes
  wf memory ls --scope role/fix-bug/coder --tag deploy -o json`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if scopes {
				return a.at(ctx, func(p *target) error {
					l, err := p.Scopes(ctx)
					return answer(a, l, err, a.scopeTable)
				})
			}
			q.Scope = m.scope
			return a.memoryLs(ctx, q)
		},
	}
	tagFlags(cmd, &q.Tags, &q.AllTags)
	cmd.Flags().BoolVar(&q.Pinned, "pinned", false, "only pinned ones")
	cmd.Flags().IntVarP(&q.Part.Limit, "limit", "n", 50, "at most this many, 0 is all")
	cmd.Flags().BoolVar(&scopes, "scopes", false, "list the memories there are instead of what one holds")
	return cmd
}

func (a *app) memoryLs(ctx context.Context, q api.MemoryQuery) error {
	if a.hubURL() == "" {
		if missing, err := a.NoStoreYet(); err != nil {
			return err
		} else if missing {
			return a.listMemories(api.Memories{Items: []api.MemoryItem{}, Schema: "wf.memories/v1", Scope: compose.MemoryScope(q.Scope)}, nil)
		}
	}
	return a.at(ctx, func(p *target) error {
		q.Part.Limit = max(0, q.Part.Limit)
		l, err := p.Memories(ctx, q)
		if err == nil && len(l.Items) == 0 && !a.AsJSON() {
			err = a.tellOthers(ctx, p, l.Scope)
		}
		if err != nil {
			return err
		}
		l.Model, l.Next = "", "" // wf memory dump and -n tell these
		return a.listMemories(l, l.Items)
	})
}

func (a *app) scopeTable(l *api.MemoryScopes) error {
	rows := [][]string{{"SCOPE", "MEMORIES", "PINNED", "MODEL"}}
	for _, x := range l.Items {
		rows = append(rows, []string{render.Visible(x.Scope), fmt.Sprint(x.Memories), fmt.Sprint(x.Pinned), render.Visible(x.Model)})
	}
	return render.Table(a.Out, rows)
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
		return "", protocol.ErrMemory.With("keep it in a file, and remember where it lies", "stdin holds more than %d bytes, the most that a memory holds", protocol.MemoryMax)
	}
	return string(b), nil
}

// memoryFlags say which memory a command works on.
type memoryFlags struct {
	scope string // --scope; "" is the user's, of the user of the store
	model string // --model
}

// tellOthers says on stderr which other memories there are, where the one asked for is empty.
func (a *app) tellOthers(ctx context.Context, p *target, scope string) error {
	l, err := p.Scopes(ctx)
	if err != nil {
		return err
	}
	var others []string
	for _, x := range l.Items {
		if x.Scope != scope {
			others = append(others, x.Scope)
		}
	}
	if len(others) > 10 {
		others = append(others[:10], fmt.Sprintf("and %d more", len(others)-10))
	}
	a.Progress("nothing is remembered in %s", scope)
	if len(others) > 0 {
		a.Progress("there is %s: name one with --scope", strings.Join(others, ", "))
	}
	return nil
}
