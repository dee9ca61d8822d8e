package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/service/query"
)

func newVerify(a *app) *cobra.Command {
	var o cas.VerifyOptions
	var forget, mend bool
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
			case archive && forget:
				return usagef("--forget is for a store; nothing was noted of %s", args[0])
			case archive && mend:
				return usagef("--mend is for a store; an archive has no stored states")
			case archive:
				return a.verifyCAR(cmd.Context(), args[0], o)
			}
			if url := a.hubURL(); url != "" {
				if forget || mend {
					return usagef("--forget and --mend are for the store of this machine, not for %s; from there archives are read and proved here", url)
				}
				return a.atServer(url, func(p *target) error { return a.verifyThere(cmd.Context(), p, args, o) })
			}
			return a.verifyStore(cmd.Context(), args, o, forget, mend)
		},
	}
	cmd.Flags().BoolVar(&o.All, "all", false, "every run and every block of the store")
	cmd.Flags().BoolVar(&forget, "forget", false, "take the heads as they are, whatever was seen before")
	cmd.Flags().BoolVar(&mend, "mend", false, "drop stored states that differ from their journals; they are made anew")
	cmd.Flags().StringVar(&head, "head", "", "the CID of the newest event, as it was noted elsewhere")
	return cmd
}

func (a *app) verifyCAR(ctx context.Context, path string, o cas.VerifyOptions) error {
	f, err := os.Open(path)
	if err != nil {
		return usagef("%v", err)
	}
	defer f.Close()
	r, err := cas.VerifyCAR(ctx, f, o)
	if err != nil {
		return err
	}
	r.Findings = faults(r.Findings)
	return a.report(r, path)
}

// verifyThere proves runs of a server, one or all of them: their archives are read and hashed here, since the word
// of another machine proves nothing.
func (a *app) verifyThere(ctx context.Context, p *target, args []string, o cas.VerifyOptions) error {
	if len(args) == 1 {
		run, err := p.run(ctx, args[0])
		if err != nil {
			return err
		}
		r, err := proved(ctx, p, run, o)
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
	all := cas.Report{OK: true}
	for _, row := range list.Items {
		r, err := proved(ctx, p, row.ID, o)
		if err != nil {
			return fmt.Errorf("run %s: %w", row.ID, err)
		}
		add(&all, r)
	}
	return a.report(all, "the store "+p.name)
}

// proved reads the archive of a run and proves it.
func proved(ctx context.Context, p *target, run protocol.RunID, o cas.VerifyOptions) (r cas.Report, err error) {
	err = archived(ctx, p, run, func(from io.Reader) (err error) {
		if o.Head.Defined() {
			o.Run = run // the chain of the first root must hold that head, whatever the archive calls its runs
		}
		r, err = cas.VerifyCAR(ctx, from, o)
		return err
	})
	if err != nil {
		return r, err
	}
	if !o.Head.Defined() {
		mustHold(&r, run)
	}
	r.Findings = faults(r.Findings)
	return r, nil
}

// add joins the reports of two archives.
func add(all *cas.Report, r cas.Report) {
	all.Schema, all.OK = r.Schema, all.OK && r.OK
	c := &all.Checked
	c.Heads += r.Checked.Heads
	c.Events += r.Checked.Events
	c.Records += r.Checked.Records
	c.Blocks += r.Checked.Blocks
	c.Bytes += r.Checked.Bytes
	all.Findings = append(all.Findings, r.Findings...)
	for _, n := range r.NotProven {
		if !slices.Contains(all.NotProven, n) {
			all.NotProven = append(all.NotProven, n)
		}
	}
}

// mustHold adds a finding to the report of an archive that holds another run than the one that was asked for. No
// event names its run: that the archive gives it the right name is the word of the server.
func mustHold(r *cas.Report, run protocol.RunID) {
	var held []string
	for _, h := range r.Heads {
		if h.Name == protocol.RunHead(run) {
			r.NotProven = append(r.NotProven, "no event names its run: that it is the one that was asked for is the word of the server, unless --head is a head that was noted elsewhere")
			return
		}
		held = append(held, h.Name)
	}
	if !r.OK {
		return // it could not be read far enough to tell
	}
	r.OK = false
	r.Findings = append(r.Findings, cas.Finding{Kind: "archive", Where: "runs", Expected: protocol.RunHead(run), Actual: strings.Join(held, ", "),
		Fix: "ask the server for another archive, or its operator why it sends another run"})
}

// anotherArchive is what helps with an archive that is damaged: nothing can be put into it.
const anotherArchive = "export the run again, with wf export RUN -o FILE where it is whole, or fetch the archive again"

// faults are the findings of an archive, one for each damaged block: what links to such a block
// finds it damaged or missing too, and tells where in the run it lies.
func faults(all []cas.Finding) []cas.Finding {
	var out []cas.Finding
	byCID := map[string]int{} // what a block should be, and what it is, to its place in out
	for _, f := range all {
		if f.Kind == "corrupt" || f.Kind == "missing" {
			f.Fix = anotherArchive
		}
		if strings.HasPrefix(f.Where, "byte ") {
			byCID[f.Expected], byCID[f.Actual] = len(out), len(out)
			out = append(out, f)
			continue
		}
		i, known := byCID[f.Expected]
		switch {
		case !known:
			out = append(out, f)
		case !strings.Contains(out[i].Where, "("):
			out[i].Where += " (" + f.Where + ")"
		}
	}
	return out
}

// verifyStore verifies a store, or one run of it, and notes the heads that it found sound.
func (a *app) verifyStore(ctx context.Context, args []string, o cas.VerifyOptions, forget, mend bool) error {
	dir, _, err := a.StoreDir()
	if err != nil {
		return err
	}
	what := "the store " + dir
	if len(args) == 1 {
		if o.Run, err = a.runToVerify(ctx, args[0]); err != nil {
			return err
		}
		if o.Run != "" {
			what = "run " + string(o.Run)
		}
	}
	state := cas.StateDir(os.Getenv)
	if state != "" {
		if o.LastSeen, err = cas.LoadPinnedHeads(state, dir); err != nil {
			return err
		}
	}
	var forgotten []string
	own := o.LastSeen.Heads
	if forget {
		forgotten, o.LastSeen = o.LastSeen.Names(o.Run), cas.PinnedHeads{}
	}
	r, err := cas.VerifyDir(ctx, dir, o)
	if errors.Is(err, protocol.ErrUnknownRun) {
		return fail(protocol.ErrUnknownRun, "", "no run %q in %s", o.Run, dir)
	}
	if err == nil {
		err = a.RefoldDir(ctx, dir, &r, mend)
	}
	if err != nil {
		return err
	}
	if r.OK && state != "" {
		accepted := slices.DeleteFunc(slices.Clone(r.Heads), func(h cas.Head) bool { return !forget || own[h.Name].Seq == 0 })
		err := errors.Join(cas.Forget(ctx, state, dir, forgotten), cas.Adopt(ctx, state, dir, accepted))
		if err = errors.Join(err, cas.SeeFound(ctx, state, dir, r.Heads)); err != nil {
			a.Progress("warning: the heads were not noted outside of the store: %v", err)
		}
	}
	return a.report(r, what)
}

// runToVerify finds a run; where it is gone, or the store no longer opens, only a whole id can
// be meant.
func (a *app) runToVerify(ctx context.Context, arg string) (protocol.RunID, error) {
	var run protocol.RunID
	err := a.WithStore(ctx, func(s *cas.Store) (err error) {
		run, err = a.resolveRun(ctx, s, arg)
		return err
	})
	id, newest := protocol.RunID(written(arg)), latest().MatchString(written(arg))
	switch {
	case err == nil:
		return run, nil
	case errors.Is(err, protocol.ErrUnknownRun) && !newest:
		return id, nil // a head that was removed is found by reflog and last seen heads
	case errors.Is(err, protocol.ErrUnknownRun), errors.Is(err, protocol.ErrAmbiguous), errors.Is(err, protocol.ErrUsage),
		errors.Is(err, protocol.ErrBusy), errors.Is(err, protocol.ErrNotFound) && !newest:
		return "", err
	}
	a.Progress("the store cannot be read in the usual way (%s); reading its file directly", messageOf(err))
	if newest {
		return "", nil // which one was the latest cannot be told: all are verified
	}
	return id, nil
}

// report writes what a verification found.
func (a *app) report(r cas.Report, what string) error {
	if err := a.ShowReport(query.Report(r), what); err != nil {
		return err
	}
	if err := r.Err(); err != nil {
		return silent{err}
	}
	return nil
}
