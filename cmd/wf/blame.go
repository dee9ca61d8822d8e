package main

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/files"
	"wf/protocol"
	"wf/service/query"
)

func newBlame(a *app) *cobra.Command {
	var run string
	cmd := &cobra.Command{
		Use:   "blame FILE[:LINE]",
		Short: "Tell which step wrote each line of a file",
		Long: `Tell line by line which step of a run wrote a file, and behind which tool call. "outside" wrote what was there before the
run, or was changed while no step acted, or since. Where several steps acted at the same time it is one of them.

Without --run it is the newest run that recorded files in the workspace of the file. At a server the file is as the run
recorded it last; here, as it is now.`,
		Example: `  wf blame main.go
  wf blame main.go:42
  wf blame src/app.ts --run 7K3Q -o json`,
		Args: takes(1, 1, "a file"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
			name, line := lineOf(written(args[0]))
			b, err := blame(ctx, p, name, run)
			if err != nil {
				return err
			}
			if line > 0 {
				if line > len(b.Lines) {
					return usagef("%s has %s", name, protocol.Plural(len(b.Lines), "line"))
				}
				b.Lines = b.Lines[line-1 : line]
			}
			return answer(a, b, nil, a.ShowBlame)
		}),
	}
	cmd.Flags().StringVar(&run, "run", "", "the run; else the newest that recorded files there")
	return cmd
}

// lineOf takes FILE:LINE apart; a file that has the whole of it as its name is that one.
func lineOf(arg string) (name string, line int) {
	i := strings.LastIndexByte(arg, ':')
	if i <= 0 {
		return arg, 0
	}
	n, err := strconv.Atoi(arg[i+1:])
	if _, there := os.Lstat(arg); err != nil || n < 1 || there == nil {
		return arg, 0
	}
	return arg[:i], n
}

// blame tells the lines of a file apart.
func blame(ctx context.Context, p *target, name, run string) (*api.Blame, error) {
	at, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	var l *api.Looks
	if run != "" {
		id, err := p.run(ctx, run)
		if err == nil {
			l, err = p.Looks(ctx, id)
		}
		if err != nil {
			return nil, err
		}
	} else if l, err = recordedAt(ctx, p, at); err != nil {
		return nil, err
	}
	path, inside := inWorkspace(l.Workspace, at)
	if !inside {
		path = filepath.ToSlash(filepath.Clean(name)) // as it lies in the workspace of the run
	}
	var now []byte
	if inside && p.here != nil {
		if now, err = files.Read(at, query.BlameMax); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return query.Blame(p.read(ctx), l, path, now)
}

// inWorkspace is the path of a file from a directory that it lies in.
func inWorkspace(dir, file string) (string, bool) {
	rel, err := filepath.Rel(dir, file)
	return filepath.ToSlash(rel), dir != "" && err == nil && filepath.IsLocal(rel)
}

// sought is how many runs are looked at for those that recorded files.
const sought = 1000

// recordedAt is what the newest run recorded in the workspace of a file.
func recordedAt(ctx context.Context, p *target, file string) (*api.Looks, error) {
	in := func(workspace string) bool {
		_, inside := inWorkspace(workspace, file)
		return inside
	}
	for l, err := range recorded(ctx, p, in) {
		return l, err
	}
	return nil, protocol.ErrNotFound.With("--run names a run", "no run recorded files in a workspace that has %s", file)
}

// recorded is what runs recorded in the workspaces that are meant, the newest run first.
func recorded(ctx context.Context, p *target, in func(workspace string) bool) iter.Seq2[*api.Looks, error] {
	return func(yield func(*api.Looks, error) bool) {
		page, err := p.List(ctx, api.Query{All: true, Limit: sought})
		if err != nil {
			yield(nil, err)
			return
		}
		for _, row := range page.Items {
			v, err := p.Run(ctx, row.ID, api.Window{Limit: 1})
			if err != nil {
				yield(nil, err)
				return
			}
			if !in(v.Info.Workspace) {
				continue
			}
			l, err := p.Looks(ctx, row.ID)
			if (err != nil || l.Recorded) && (!yield(l, err) || err != nil) {
				return
			}
		}
	}
}
