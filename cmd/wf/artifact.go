package main

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
)

func newArtifact(a *app) *cobra.Command {
	var to string
	var cat, force bool
	cmd := &cobra.Command{
		Use:   "artifact [RUN[:STEP]] [PATH...]",
		Short: "List or fetch the files that a run keeps",
		Long: `List the files that the roles of a run keep by artifacts:, or fetch them: --to writes them below a directory, --cat
writes one to stdout. PATH is a file or a directory; without one all are meant. Where several steps keep a file, the
newest counts when it is fetched. The files of a sub-workflow belong to the step that began it, and are listed with its run.

What is fetched is proved by its hash, also from a server. A file that is there stays without --force; links are made only
where they lead to another place in the directory.`,
		Example: `  wf artifact -1
  wf artifact 7K3Q:build#1 --to out
  wf artifact -1 dist/app.js --cat
  wf artifact -1 -o json | jq '.artifacts[].path'`,
		Args: takes(0, -1),
		PreRunE: func(_ *cobra.Command, args []string) error {
			switch {
			case cat && to != "":
				return usagef("--cat and --to cannot be combined")
			case force && to == "":
				return usagef("--force belongs to --to")
			case cat && len(args) != 2:
				return usagef("--cat takes a run and one path")
			}
			return nil
		},
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
			at, err := p.runOrStep(ctx, latestUnless(args))
			if err != nil {
				return err
			}
			list, err := p.artifacts(ctx, at, args[min(1, len(args)):])
			switch {
			case err != nil:
				return err
			case cat:
				return a.catArtifact(ctx, p, list)
			case to != "":
				return a.fetchArtifacts(ctx, p, list, to, force)
			}
			return answer(a, list, nil, a.ShowArtifacts)
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "write the files below this directory")
	cmd.Flags().BoolVar(&cat, "cat", false, "write the file to stdout")
	cmd.Flags().BoolVar(&force, "force", false, "replace files that are there")
	return cmd
}

func (p *target) read(ctx context.Context) tree.Read {
	return func(l protocol.Link) ([]byte, error) { return p.Block(ctx, l) }
}

// artifacts are those of a run, or of one step, at or below the paths.
func (p *target) artifacts(ctx context.Context, at api.Ref, paths []string) (*render.Artifacts, error) {
	var steps []*api.Step
	if at.Step != "" {
		s, err := p.Step(ctx, at.Run, at.Step)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s.Step)
	} else {
		v, err := p.Run(ctx, at.Run, api.Window{})
		if err != nil {
			return nil, err
		}
		steps = v.Steps
	}
	out, err := p.artifactsOf(ctx, at.Run, steps)
	if err != nil || len(paths) == 0 {
		return out, err
	}
	all := out.Artifacts
	out.Artifacts = nil
	met := make([]bool, len(paths))
	for _, x := range all {
		in := false
		for i, want := range paths {
			want = path.Clean(want)
			if want == "." || x.Path == want || strings.HasPrefix(x.Path, want+"/") {
				in, met[i] = true, true
			}
		}
		if in {
			out.Artifacts = append(out.Artifacts, x)
		}
	}
	for i, ok := range met {
		if !ok {
			return nil, protocol.ErrUnknownArtifact.With("", "%s keeps no file %q", at, paths[i])
		}
	}
	return out, nil
}

// artifactsOf are the files that steps keep, and the runs of their sub-workflows.
func (p *target) artifactsOf(ctx context.Context, run protocol.RunID, steps []*api.Step) (*render.Artifacts, error) {
	list := &keptFiles{p: p, out: &render.Artifacts{Schema: "wf.artifacts/v1", Run: run, Artifacts: []render.Artifact{}}, seen: map[protocol.RunID]bool{run: true}}
	return list.out, list.add(ctx, "", steps)
}

// keptFiles gathers the files that a run keeps.
type keptFiles struct {
	p    *target
	out  *render.Artifacts
	seen map[protocol.RunID]bool
}

// add reads the trees of steps, those of a sub-workflow where its step stands. child is the run they are of, "" for the
// one that was asked for.
func (k *keptFiles) add(ctx context.Context, child protocol.RunID, steps []*api.Step) error {
	for _, s := range steps {
		if s.Child != "" && !k.seen[s.Child] {
			k.seen[s.Child] = true
			v, err := k.p.Run(ctx, s.Child, api.Window{})
			if err != nil {
				return err
			}
			if err := k.add(ctx, s.Child, v.Steps); err != nil {
				return err
			}
		}
		if s.Artifacts == nil {
			continue
		}
		root, err := protocol.ParseLink(*s.Artifacts)
		if err != nil {
			return err
		}
		for it, err := range tree.Walk(k.p.read(ctx), root) {
			if err != nil {
				return fmt.Errorf("artifacts of %s: %w", s.ID, err)
			}
			k.out.Artifacts = append(k.out.Artifacts, render.Artifact{Run: child, Artifact: api.NewArtifact(s.ID, it)})
		}
	}
	return nil
}

// newest are the files without those that a later step keeps too.
func newest(list *render.Artifacts) ([]tree.Item, error) {
	at := map[string]int{}
	var out []tree.Item
	for _, x := range list.Artifacts {
		it := tree.Item{Path: x.Path, Entry: tree.Entry{Name: path.Base(x.Path), Mode: tree.Mode(x.Mode), Size: x.Size, Why: x.Why}}
		if x.CID != "" {
			var err error
			if it.Link, err = protocol.ParseLink(x.CID); err != nil {
				return nil, err
			}
		}
		if i, ok := at[x.Path]; ok {
			out[i] = it
			continue
		}
		at[x.Path] = len(out)
		out = append(out, it)
	}
	return out, nil
}

func (a *app) catArtifact(ctx context.Context, p *target, list *render.Artifacts) error {
	items, err := newest(list)
	if err != nil {
		return err
	}
	if len(items) != 1 {
		return usagef("--cat writes one file, and there are %d: name one", len(items))
	}
	return a.cat(p.read(ctx), items[0].Entry)
}

// cat writes a file of a tree to stdout.
func (a *app) cat(read tree.Read, e tree.Entry) error {
	to := io.Writer(a.Out) // shows what a terminal would act on
	if !a.Out.TTY {
		to = a.Out.Writer // the bytes as they are
	}
	r, err := tree.Open(read, e)
	if err == nil {
		_, err = io.Copy(to, r)
	}
	return err
}

func (a *app) fetchArtifacts(ctx context.Context, p *target, list *render.Artifacts, to string, force bool) error {
	items, err := newest(list)
	if err != nil {
		return err
	}
	return a.lay(p.read(ctx), list.Run, items, to, force)
}

// lay writes files of trees below a directory, and says so.
func (a *app) lay(read tree.Read, run protocol.RunID, items []tree.Item, to string, force bool) error {
	laid, err := workspace.Lay(to, items, workspace.Laying{Force: force, Open: open(read)})
	if err != nil {
		return err
	}
	for _, s := range laid.Skipped {
		a.Progress("left out %s", s)
	}
	return a.Say(render.NewFetched(run, to, laid.Files, laid.Bytes, laid.Skipped), "%s, %s, in %s\n", protocol.Plural(laid.Files, "file"), render.Size(laid.Bytes), to)
}

// open opens files of trees.
func open(read tree.Read) func(tree.Item) (io.ReadCloser, error) {
	return func(it tree.Item) (io.ReadCloser, error) {
		r, err := tree.Open(read, it.Entry)
		return io.NopCloser(r), err
	}
}

// showArtifacts lists the files that steps keep, where there are any.
func (a *app) showArtifacts(ctx context.Context, p *target, run protocol.RunID, steps []*api.Step) error {
	list, err := p.artifactsOf(ctx, run, steps)
	if err != nil || len(list.Artifacts) == 0 {
		return err
	}
	return a.ShowKept(list)
}
