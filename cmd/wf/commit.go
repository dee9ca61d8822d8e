package main

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/files"
	"wf/service"
)

// committedRuns is how many runs are asked at most which of their steps wrote what is committed.
const committedRuns = 50

func newCommit(a *app) *cobra.Command {
	var c service.Committing
	var run string
	cmd := &cobra.Command{
		Use:   "commit [PATH...]",
		Short: "Commit to git, with a trailer for each step that wrote a part of it",
		Long: `Commit what is staged in the git repository of this directory, and note in the message which steps wrote the lines that
the commit adds: a trailer such as Wf-Step: 7K3Q8XW2NM:coder#2 for each. What no run recorded gets none: a user wrote it.
Runs of this workspace are asked from the newest one on, at most 50 of them; --run asks one alone. --dry-run tells which
trailers the staged files would get; git log --grep 'Wf-Step: 7K3Q' finds all commits of a run.

With PATH those files are staged first, new and removed ones too; with --all those that git knows. They stay staged where the
commit fails. git and its hooks and filters run as the commands of agents do, since agents can write what says what they do:
without a network, signing keys and an editor.`,
		Example: `  wf commit -m 'Parse empty lines' src
  wf commit --all -m 'Parse empty lines'
  wf commit --dry-run`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case c.All && len(args) > 0:
				return usagef("--all and paths cannot be combined")
			case c.DryRun && (c.All || len(args) > 0):
				return usagef("--dry-run tells of what is staged: git add stages files")
			case !c.DryRun && strings.TrimSpace(c.Message) == "":
				return usagef("give a message: -m 'what changed'")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.at(ctx, func(p *target) error {
				var err error
				if c.Workspace, c.Paths, err = committedIn(args); err != nil {
					return err
				}
				c.Local, c.Read, c.Looks = p.here.Local, p.read(ctx), committedBy(ctx, p, c.Workspace, run)
				c.Tell = func(text string) { a.Progress("%s", render.Visible(strings.TrimSpace(text))) }
				out, err := c.Commit(ctx)
				return answer(a, out, err, a.ShowCommit)
			})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&c.Message, "message", "m", "", "message of the commit")
	f.BoolVarP(&c.All, "all", "a", false, "stage every file that git knows and that was changed or removed")
	f.BoolVar(&c.DryRun, "dry-run", false, "tell which trailers what is staged would get, and commit nothing")
	f.BoolVar(&c.NoVerify, "no-verify", false, "leave the hooks of git out")
	f.StringVar(&run, "run", "", "ask this run alone")
	return cmd
}

// committedIn is the top of the git repository of this directory, and paths from there.
func committedIn(args []string) (top string, paths []string, err error) {
	here, err := os.Getwd()
	if err != nil {
		return "", nil, err
	}
	for top = here; !files.Exists(filepath.Join(top, ".git")); top = filepath.Dir(top) {
		if top == filepath.Dir(top) {
			return "", nil, usagef("%s is in no git repository", here)
		}
	}
	for _, arg := range args {
		path, inside := inWorkspace(top, filepath.Join(here, arg))
		if filepath.IsAbs(arg) {
			path, inside = inWorkspace(top, arg)
		}
		if !inside {
			return "", nil, usagef("%s is not in the git repository %s", arg, top)
		}
		paths = append(paths, path)
	}
	return top, paths, nil
}

// committedBy is what runs recorded in a repository, the newest run first; of --run that run alone.
func committedBy(ctx context.Context, p *target, top, run string) iter.Seq2[*api.Looks, error] {
	return func(yield func(*api.Looks, error) bool) {
		if run != "" {
			var l *api.Looks
			id, err := p.run(ctx, run)
			if err == nil {
				l, err = p.Looks(ctx, id)
			}
			yield(l, err)
			return
		}
		asked := 0
		for l, err := range recorded(ctx, p, func(dir string) bool { return service.Overlap(top, dir) }) {
			if asked++; !yield(l, err) || asked == committedRuns {
				return
			}
		}
	}
}
