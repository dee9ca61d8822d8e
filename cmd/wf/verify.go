package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/service/proof"
	"wf/service/query"
	"wf/store"
)

func newVerify(a *app) *cobra.Command {
	var o proof.Options
	var head string
	cmd := &cobra.Command{
		Use:   "verify [RUN | FILE.car]",
		Short: "Prove a run, a store or an archive by hash",
		Long: `Read everything again and hold it against its hash and its place: bytes, strict form, links, the chain of
each run, its records, its head against the reflog and against the heads that were seen before, which
are kept outside of the store. It works on a store that no longer opens. Exit 7 when there is a finding.

The state that a store keeps of a run or a memory, so as not to read the whole journal each time, is
computed again from that journal and compared. --mend drops one that differs.

A store that was put back to an older copy, or made anew in the same place, is found by the heads that were
seen. Where that was done on purpose, --forget has the heads that are there now be the last seen ones.`,
		Example: `  wf verify -1
  wf verify --all

  # after a backup was put back on purpose
  wf verify --forget

  # against the head that someone else noted
  wf verify run.car --head bafyreigh2akiscaildc…`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if head != "" {
				l, err := protocol.ParseLink(head)
				if err != nil {
					return usagef("--head: %v", err)
				}
				o.Head = l
			}
			switch archive := len(args) == 1 && strings.HasSuffix(args[0], ".car"); {
			case o.All && len(args) == 1:
				return usagef("either %s or --all", written(args[0]))
			case archive && o.Forget:
				return usagef("--forget is for a store; nothing was noted of %s", args[0])
			case archive && o.Mend:
				return usagef("--mend is for a store; an archive has no stored states")
			case archive:
				r, err := proof.File(cmd.Context(), args[0], o.VerifyOptions)
				if err != nil {
					return err
				}
				return a.report(r, args[0])
			}
			if url := a.hubURL(); url != "" {
				if o.Forget || o.Mend {
					return usagef("--forget and --mend are for the store of this machine, not for %s; from there archives are read and proved here", url)
				}
				return a.atServer(url, func(p *target) error { return a.verifyThere(cmd.Context(), p, args, o.VerifyOptions) })
			}
			return a.verifyStore(cmd.Context(), args, o)
		},
	}
	cmd.Flags().BoolVar(&o.All, "all", false, "every run and every block of the store")
	cmd.Flags().BoolVar(&o.Forget, "forget", false, "take the heads as they are, whatever was seen before")
	cmd.Flags().BoolVar(&o.Mend, "mend", false, "drop stored states that differ from their journals; they are made anew")
	cmd.Flags().StringVar(&head, "head", "", "the CID of the newest event, as it was noted elsewhere")
	return cmd
}

// verifyThere proves runs of a server, one or all of them: their archives are read and hashed here, since the word
// of another machine proves nothing.
func (a *app) verifyThere(ctx context.Context, p *target, args []string, o cas.VerifyOptions) error {
	if len(args) == 1 {
		run, err := p.run(ctx, args[0])
		if err != nil {
			return err
		}
		r, err := proof.Run(ctx, p, run, o)
		if err != nil {
			return err
		}
		return a.report(r, "run "+string(run))
	}
	list, err := p.List(ctx, api.Query{})
	if err != nil {
		return err
	}
	if len(list.Missing) > 0 {
		a.Progress("the runs of %s are not verified: no answer from there", strings.Join(list.Missing, ", "))
	}
	all := cas.Report{Report: protocol.Report{OK: true}}
	for _, row := range list.Items {
		r, err := proof.Run(ctx, p, row.ID, o)
		if err != nil {
			return fmt.Errorf("run %s: %w", row.ID, err)
		}
		proof.Add(&all, r)
	}
	return a.report(all, "the store "+p.name)
}

// verifyStore verifies a store, or one run of it, and notes the heads that it found sound.
func (a *app) verifyStore(ctx context.Context, args []string, o proof.Options) error {
	dir, _, err := a.StoreName()
	if err != nil {
		return err
	}
	what := "the store " + store.Shown(dir)
	if len(args) == 1 {
		if o.Run, err = a.runToVerify(ctx, args[0]); err != nil {
			return err
		}
		if o.Run != "" {
			what = "run " + string(o.Run)
		}
	}
	r, err := proof.Store(ctx, a.Setup, dir, o)
	if err != nil {
		return err
	}
	return a.report(r, what)
}

// runToVerify finds a run; where it is gone, or the store no longer opens, only a whole id can
// be meant.
func (a *app) runToVerify(ctx context.Context, arg string) (protocol.RunID, error) {
	var run protocol.RunID
	err := a.WithStore(ctx, func(s store.Store) (err error) {
		run, err = a.atStore(s).run(ctx, arg)
		return err
	})
	id, newest := protocol.RunID(written(arg)), latest().MatchString(written(arg))
	switch {
	case err == nil:
		return run, nil
	case errors.Is(err, protocol.ErrUnknownRun) && !newest:
		return id, nil // a head that was removed is found by reflog and last seen heads
	case errors.Is(err, protocol.ErrUnknownRun), errors.Is(err, protocol.ErrRunDeleted), errors.Is(err, protocol.ErrAmbiguous), errors.Is(err, protocol.ErrUsage),
		errors.Is(err, protocol.ErrBusy), errors.Is(err, protocol.ErrNotFound) && !newest:
		return "", err
	}
	a.Progress("the store cannot be read in the usual way (%s); reading its file directly", messageOf(err))
	if newest {
		return "", nil // which one was the latest cannot be told: all are verified
	}
	return id, nil
}

func (a *app) report(r cas.Report, what string) error {
	if err := answer(a, query.Report(r), nil, func(r *protocol.Report) error { return a.ShowReport(r, what) }); err != nil {
		return err
	}
	if err := r.Err(); err != nil {
		return silent{err}
	}
	return nil
}
