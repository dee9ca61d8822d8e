package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/service"
	"wf/service/compose"
)

func newMemorySearch(a *app, m *memoryFlags) *cobra.Command {
	var q api.Recall
	cmd := &cobra.Command{
		Use:     "search [TEXT]",
		Aliases: []string{"recall"},
		Short:   "Find memories by meaning, by tags, or both",
		Long: `Find memories by meaning, by tags, or both. The nearest come first; the distance is 0 for the same text and 1
for an unrelated one, and comparable to others of the same embedding model alone. By tags alone the newest come first.`,
		Example: `  wf memory search "where does the deploy key live?"
  wf memory search "key" --tag deploy --tag prod --all-tags
  wf memory search --scope code "how is a store locked" -o json | jq '.items[].place'`,
		Args: takes(0, 1),
		PreRunE: func(_ *cobra.Command, args []string) error {
			switch {
			case strings.TrimSpace(strings.Join(args, "")) == "" && len(q.Tags) == 0:
				return usagef("wf memory search needs a text or --tag")
			case q.Limit < 0 || q.Limit > api.MaxRecalled:
				return usagef("-n %d: want 1 to %d", q.Limit, api.MaxRecalled)
			}
			return nil
		},
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
			q.Scope, q.Model, q.Text = m.scope, m.model, strings.Join(args, "")
			got, err := p.Recall(ctx, q)
			if err != nil {
				return err
			}
			if len(got.Items) == 0 && !a.AsJSON() {
				a.Progress("nothing that fits is remembered in %s; wf memory ls --scopes lists the others", got.Scope)
			}
			return a.listMemories(got, got.Items)
		}),
	}
	tagFlags(cmd, &q.Tags, &q.AllTags)
	cmd.Flags().IntVarP(&q.Limit, "limit", "n", 0, "at most this many (default 5, and 20 by tags alone; 100 at most)")
	cmd.Flags().Float64Var(&q.Within, "within", 0, "only those no farther than this")
	return cmd
}

func newMemoryReindex(a *app, m *memoryFlags) *cobra.Command {
	var every bool
	cmd := &cobra.Command{
		Use:   "reindex",
		Short: "Make the vectors of a memory anew, also with another embedding model",
		Long: `Make the vectors of a memory anew where they are missing or damaged, with another embedding model if --model names
one, and wholly where the model now gives vectors of another length. Nothing that is remembered depends on them.`,
		Example: `  wf memory reindex
  wf memory reindex --scope code --model local/nomic-embed-text
  wf memory reindex --all`,
		Args: takes(0, 0),
		RunE: a.inTarget(func(ctx context.Context, p *target, _ []string) error { return a.memoryReindex(ctx, p, *m, every) }),
	}
	cmd.Flags().BoolVar(&every, "all", false, "every memory of the store")
	return cmd
}

func (a *app) memoryReindex(ctx context.Context, p *target, m memoryFlags, every bool) error {
	scopes := []string{m.scope}
	if every {
		l, err := p.Scopes(ctx)
		if err != nil {
			return err
		}
		scopes = nil
		for _, x := range l.Items {
			scopes = append(scopes, x.Scope)
		}
	}
	items := []api.ReindexedScope{}
	for _, scope := range scopes {
		got, err := p.Reindex(ctx, api.Reindex{Scope: scope, Model: m.model}, a.embedding(compose.MemoryScope(scope)))
		if err != nil {
			return err
		}
		items = append(items, got.ReindexedScope)
	}
	if a.AsJSON() {
		return a.Answer(map[string]any{"schema": "wf.memory_reindex/v1", "items": items})
	}
	for _, x := range items {
		_, err := fmt.Fprintf(a.Out, "%s: %s indexed with %s, %d embedded anew\n", render.Visible(x.Scope), many(x.Memories, "memory", "memories"), render.Visible(cmp.Or(x.Model, "no model yet")), x.Embedded)
		if err != nil {
			return err
		}
	}
	return nil
}

// tellEvery is how often long work on a memory tells how far it has come.
const tellEvery = 2 * time.Second

// telling tells now and then how far long work has come, by two numbers.
func (a *app) telling(format, scope string) func(n, m int) {
	told := time.Now()
	return func(n, m int) {
		if time.Since(told) >= tellEvery {
			told = time.Now()
			a.Progress(format, scope, n, m)
		}
	}
}

// embedding tells how far the embedding of a memory has come.
func (a *app) embedding(scope string) func(done, of int) {
	tell := a.telling("%s: embedded %d of %d", scope)
	return func(done, of int) {
		if done < of {
			tell(done, of)
		}
	}
}

// codeScope is the memory of wf memory index where none is named.
const codeScope = "code"

func newMemoryIndex(a *app, m *memoryFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "index DIR",
		Short: "Remember the files of a directory, to recall by file and line",
		Long: `Remember the text files of a directory piece by piece, in the memory "code" unless --scope names another; a role
with memory: {scope: code} then recalls from it. What .gitignore names is left out. Indexing again takes in what changed.`,
		Example: `  wf memory index .
  wf memory search --scope code "where are locks taken?"`,
		Args: takes(1, 1, "a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f := *m
			if f.scope == "" {
				f.scope = codeScope
			}
			return a.memoryIndex(cmd.Context(), f, args[0])
		},
	}
}

func (a *app) memoryIndex(ctx context.Context, m memoryFlags, dir string) error {
	root, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if at, err := os.Stat(root); err != nil || !at.IsDir() {
		return usagef("%s is no directory", dir)
	}
	return a.atNew(ctx, func(p *target) error {
		scope := compose.MemoryScope(m.scope)
		r, embedErr := service.IndexFiles(ctx, p, m.scope, m.model, root, a.telling("%s: read %d files, %d pieces", scope), a.embedding(scope))
		if r == nil {
			return embedErr
		}
		// The pieces are kept; vectors that cannot be made now are made when they are missed.
		if a.AsJSON() {
			return errors.Join(embedErr, a.Answer(map[string]any{"schema": "wf.memory_index/v1", "scope": r.Scope, "root": root, "model": r.Model, "embedded": r.Embedded,
				"files": r.Files, "pieces": r.Pieces, "added": r.Added, "moved": r.Moved, "removed": r.Removed, "skipped": r.Skipped}))
		}
		for _, x := range r.Skipped {
			if a.Verbose {
				a.Progress("left out %s: %s", render.Visible(x.Name), render.Visible(x.Why))
			}
		}
		if n := len(r.Skipped); n > 0 && !a.Verbose {
			a.Progress("left out %s, -v names them", many(n, "file", "files"))
		}
		_, err = fmt.Fprintf(a.Out, "indexed %s in %s with %s: %d pieces, %d added, %d moved, %d removed\n",
			many(r.Files, "file", "files"), render.Visible(r.Scope), render.Visible(r.Model), r.Pieces, r.Added, r.Moved, r.Removed)
		return errors.Join(embedErr, err)
	})
}
