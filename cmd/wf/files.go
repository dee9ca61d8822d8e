package main

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/service/query"
)

// showing is what wf files is asked for.
type showing struct {
	before, changed, force bool
	out                    string
}

func newFiles(a *app) *cobra.Command {
	var x showing
	cmd := &cobra.Command{
		Use:   "files [RUN[:STEP]] [PATH]",
		Short: "List the files that a step left, or print one",
		Long: `List the files of the workspace as a step left them; --before, as it found them. Of a run without a step they are those
of its end and its beginning. What changed meanwhile is marked + (added), ~ (changed) or − (removed), with the step that did
it; "outside" is what no step of the run did, and "one of" stands where several acted at the same time.

With the path of a file that file is printed, or written by --out; with that of a directory, what is in it is listed. What is
left out of the records (workspace: in wf help language) is not listed; a file that holds a secret, or is too large, is listed
without its content.`,
		Example: `  wf files -1:coder#2
  wf files -1 --changed
  wf files 7K3Q:coder#2 main.go
  wf files 7K3Q:coder#2 main.go --before --out main.old.go
  wf files -1:coder#1 -o json | jq '.files[] | select(.change) | .path'`,
		Args: takes(0, 2),
		PreRunE: func(_ *cobra.Command, args []string) error {
			switch {
			case x.out != "" && len(args) != 2:
				return usagef("--out takes a step and one path")
			case x.force && x.out == "":
				return usagef("--force belongs to --out")
			}
			return nil
		},
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
			at, err := p.runOrStep(ctx, latestUnless(args))
			if err != nil {
				return err
			}
			below := ""
			if len(args) == 2 {
				below = path.Clean(filepath.ToSlash(args[1]))
			}
			return a.files(ctx, p, at, below, x)
		}),
	}
	cmd.Flags().BoolVar(&x.before, "before", false, "as the step found them")
	cmd.Flags().BoolVar(&x.changed, "changed", false, "only those that changed")
	cmd.Flags().StringVar(&x.out, "out", "", "write the file there")
	cmd.Flags().BoolVar(&x.force, "force", false, "replace a file that is there")
	return cmd
}

// span is what a run recorded of its files, and the part of it that belongs to a step.
func (p *target) span(ctx context.Context, at api.Ref) (*api.Looks, *api.Span, error) {
	l, err := p.Looks(ctx, at.Run)
	if err != nil {
		return nil, nil, err
	}
	span, err := l.Of(at.Step)
	if err != nil && at.Step != "" {
		if _, unknown := p.Step(ctx, at.Run, at.Step); unknown != nil {
			err = unknown
		}
	}
	return l, span, err
}

func (a *app) files(ctx context.Context, p *target, at api.Ref, below string, x showing) error {
	l, span, err := p.span(ctx, at)
	if err != nil {
		return err
	}
	read := p.read(ctx)
	if below != "" && below != "." && (!a.AsJSON() || x.out != "") {
		root := span.At(x.before).Root
		e, err := tree.Find(read, root, below)
		switch {
		case err != nil:
			return api.NotKept(at.Run, root, unknownFile(at, below, err))
		case e.Mode == tree.Omitted:
			return protocol.ErrUnknownArtifact.With("wf files "+protocol.ShellWord(at.String())+" lists those that are", "%q is not recorded: %s", below, e.Why)
		case e.Mode == tree.Dir && x.out != "":
			return usagef("--out writes one file, and %q is a directory: wf restore %s %s --to DIR", below, protocol.ShellWord(at.String()), protocol.ShellWord(below))
		case x.out != "":
			e.Name = filepath.Base(x.out)
			return a.lay(read, at.Run, []tree.Item{{Path: e.Name, Entry: e}}, filepath.Dir(x.out), x.force)
		case e.Mode != tree.Dir:
			return api.NotKept(at.Run, root, a.cat(read, e))
		}
	}
	list, err := l.Files(read, at.Step, x.before)
	if err != nil {
		return err
	}
	all := len(list.Files)
	list.Files = slices.DeleteFunc(list.Files, func(f api.StepFile) bool { return x.changed && f.Change == "" || !within(f.Path, below) })
	if len(list.Files) == 0 && all > 0 && !x.changed {
		return unknownFile(at, below, protocol.ErrUnknownArtifact)
	}
	return answer(a, list, nil, a.ShowStepFiles)
}

// unknownFile is the error of a path that a tree does not have.
func unknownFile(at api.Ref, path string, err error) error {
	if protocol.CodeOf(err) != protocol.ErrUnknownArtifact.Code {
		return err
	}
	return protocol.ErrUnknownArtifact.With("wf files "+protocol.ShellWord(at.String())+" lists those that are", "%s has no file %q", at, path)
}

// within reports whether a path is another one, or below it; all are below "" and ".".
func within(path, dir string) bool {
	return dir == "" || dir == "." || path == dir || strings.HasPrefix(path, dir+"/")
}

// filesDiff compares the files of two steps, or what one step found with what it left.
func (a *app) filesDiff(ctx context.Context, p *target, args []string) error {
	var spans [2]*api.Span
	var looks *api.Looks
	var refs [2]api.Ref
	for i, arg := range args {
		at, err := p.runOrStep(ctx, arg)
		if err != nil {
			return err
		}
		if looks, spans[i], err = p.span(ctx, at); err != nil {
			return err
		}
		refs[i] = at
	}
	read := p.read(ctx)
	var by func(string) []string
	left, right := spans[0].Left(), spans[0].Found()
	if len(args) == 1 {
		refs[1], left, right = refs[0], right, left
		list, err := looks.Files(read, refs[0].Step, false)
		if err != nil {
			return err
		}
		known := map[string][]string{}
		for _, f := range list.Files {
			known[f.Path] = f.By
		}
		by = func(path string) []string { return known[path] }
	} else {
		right = spans[1].Left()
	}
	side := func(i int, s *api.Shot) api.FilesSide {
		return api.FilesSide{Run: refs[i].Run, Step: refs[i].Step, Phase: s.Phase, Tree: s.Tree}
	}
	d, err := query.FilesDiff(read, side(0, left), side(1, right), by)
	if err = answer(a, d, err, a.ShowFilesDiff); err == nil && !d.Equal {
		return silent{errDifference}
	}
	return err
}
