package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/service"
	"wf/store"
)

func newStoreCopy(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy the runs of a store into another one, directory or database",
		Long: `Copy all runs of a store into another one, with memories, the journals of sinks and what is known of deleted
runs: from a directory into a database, back, or between two of a kind. Ids and CIDs stay. Each run is proved by hash before its head
moves. What is there already is not sent again, so that a copy which was cut off, or one a day later, sends what is new.
A run that went on at TO stays as it is; one that went on in both is named, and stays as it is in both. What came waits: in a
directory for wf store adopt, in a database for wf resume or an answer. A directory is made where there is none; a database by wf store init.`,
		Example: `  wf store copy .wf postgres://wf@localhost/wf
  wf store copy postgres://wf@localhost/wf /mnt/copy/wf -o json`,
		Args: takes(2, 2, "two stores"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.copyRuns(cmd.Context(), args[0], args[1], "")
		},
	}
}

func newPush(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "push RUN STORE",
		Short: "Copy a run into another store, here or at a server",
		Long: `Copy a run into another store, under its id: with the runs of its sub-workflows and the files that it recorded. What is there
already is not sent again, and the whole run is proved there before its head moves. STORE is a directory, a database, or the
address of a wf serve, or of a wf hub with --worker, whose token has scope admin (--hub-token-file). A directory or database gets what the run was forked from and the
memories of its roles as well. The run waits there: for wf store adopt, in a database for wf resume or an answer.`,
		Example: `  wf push -1 postgres://wf@localhost/wf
  wf push 7K3Q /mnt/share/wf
  wf push 7K3Q https://wf.example.org --hub-token-file admin.token`,
		Args: takes(2, 2, "a run and a store"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if isServer(args[1]) {
				return a.WithStore(ctx, func(s store.Store) error {
					here := a.atStore(s)
					return a.atServer(args[1], func(there *target) error { return a.bring(ctx, here, there, args[0]) })
				})
			}
			from, _, err := a.StoreName()
			if err != nil {
				return err
			}
			return a.copyRuns(ctx, from, args[1], args[0])
		},
	}
	cmd.Flags().StringVar(&a.worker, "worker", "", "id of the worker of a hub that takes it (default: the only one)")
	return cmd
}

func newPull(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "pull RUN STORE",
		Short: "Copy a run from another store, here or at a server",
		Long: `Copy a run from another store, a directory, a database or a server, into this one: wf push in the other direction. Of a server
the token needs scope read.`,
		Example: `  wf pull 7K3Q postgres://wf@localhost/wf
  wf pull -1 /mnt/share/wf
  wf pull 7K3Q https://wf.example.org --hub-token-file read.token`,
		Args: takes(2, 2, "a run and a store"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if isServer(args[1]) {
				return a.WithNewStore(ctx, func(s store.Store) error {
					here := a.atStore(s)
					return a.atServer(args[1], func(there *target) error { return a.bring(ctx, there, here, args[0]) })
				})
			}
			to, _, err := a.StoreName()
			if err != nil {
				return err
			}
			return a.copyRuns(ctx, args[1], to, args[0])
		},
	}
}

// isServer reports whether a store is named by the address of a server, in a form of --hub.
func isServer(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "unix:")
}

// bring brings a run from one target to another.
func (a *app) bring(ctx context.Context, from, to *target, arg string) error {
	run, err := from.run(ctx, arg)
	if err != nil {
		return err
	}
	told := time.Now()
	got, sent, err := service.Bring(ctx, from, to, run, api.ImportOptions{Worker: a.worker}, func(b service.Brought) {
		if time.Since(told) >= copyEvery {
			told = time.Now()
			a.Progress("%d blocks, %d of them sent", b.Blocks, b.Sent)
		}
	})
	if err != nil {
		return fmt.Errorf("copy run %s to %s: %w", run, to.name, err)
	}
	out := broughtJSON{Schema: "wf.brought/v1", From: from.name, To: to.name, Run: run, Forwarded: list(got.Forwarded), Same: list(got.Held), Children: list(got.Children), Blocks: sent.Blocks, Sent: sent.Sent}
	what := "was not there before"
	switch {
	case slices.Contains(got.Held, run):
		what = "is there as it is here, or further"
	case slices.Contains(got.Forwarded, run):
		what = "went on there"
	}
	return a.Say(out, "run %s in %s: it %s; %d of %d blocks were sent\n", run, to.name, what, sent.Sent, sent.Blocks)
}

// broughtJSON is what a copy from or to a server says to programs.
type broughtJSON struct {
	Schema    string           `json:"schema"`
	From      string           `json:"from"`
	To        string           `json:"to"`
	Run       protocol.RunID   `json:"run"`
	Forwarded []protocol.RunID `json:"forwarded"` // that were there, and went on
	Same      []protocol.RunID `json:"same"`      // that were there already
	Children  []protocol.RunID `json:"children"`  // of sub-workflows
	Blocks    int              `json:"blocks"`
	Sent      int              `json:"sent"` // of the blocks, since they were not there
}

// copyRuns copies from one store to another: a run that arg names at the source, all where it is "".
func (a *app) copyRuns(ctx context.Context, from, to, arg string) error {
	return a.WithStoreNamed(ctx, from, true, func(source store.Store) error {
		o := service.CopyOptions{Progress: a.copyProgress()}
		if arg != "" {
			at, err := service.Resolve(ctx, a.Setup, source, written(arg))
			if err == nil {
				err = at.MustBeRun(written(arg))
			}
			if err != nil {
				return err
			}
			o.Runs = []protocol.RunID{at.Run}
		}
		return a.WithStoreNamed(ctx, to, false, func(into store.Store) error {
			o.Pins = a.Pins(into)
			done, err := service.Copy(ctx, source, into, o)
			if done == nil {
				return err
			}
			return errors.Join(a.told(done, from, to), err)
		})
	})
}

// copyEvery is how often a copy tells how far it is.
const copyEvery = 5 * time.Second

func (a *app) copyProgress() func(cas.CopyProgress) {
	told := time.Now()
	return func(p cas.CopyProgress) {
		if time.Since(told) >= copyEvery {
			told = time.Now()
			a.Progress("%d of %d runs, %d blocks, %d MB", p.Runs, p.Of, p.Blocks, p.Bytes/1e6)
		}
	}
}

// copiedJSON is what a copy says to programs; its lists are ids of runs.
type copiedJSON struct {
	Schema     string           `json:"schema"`
	From       string           `json:"from"`
	To         string           `json:"to"`
	Copied     []protocol.RunID `json:"copied"`
	Forwarded  []protocol.RunID `json:"forwarded"`
	Same       int              `json:"same"`
	Ahead      []protocol.RunID `json:"ahead"`
	Deleted    []protocol.RunID `json:"deleted"`
	Diverged   []string         `json:"diverged"` // heads: run/ID, memory/SCOPE
	Faulty     []protocol.RunID `json:"faulty"`
	Driven     []protocol.RunID `json:"driven"`
	Memories   []string         `json:"memories"`
	Sinks      []string         `json:"sinks"`
	Kept       []string         `json:"kept"` // heads that the destination has otherwise, and keeps
	Tombstones []protocol.RunID `json:"tombstones"`
	Blocks     int64            `json:"blocks"`
	Bytes      int64            `json:"bytes"`
}

// told says what became of a copy.
func (a *app) told(c *cas.Copied, from, to string) error {
	out := copiedJSON{Schema: "wf.copied/v1", From: store.Shown(from), To: store.Shown(to), Copied: list(c.Runs), Forwarded: list(c.Forwarded), Same: c.Same, Ahead: list(c.Ahead),
		Deleted: list(c.Deleted), Diverged: []string{}, Faulty: list(c.Faulty), Driven: list(c.Driven), Memories: list(c.Memories), Sinks: list(c.Sinks), Kept: list(c.Own),
		Tombstones: list(c.Tombstones), Blocks: c.Blocks, Bytes: c.Bytes}
	for _, d := range c.Diverged {
		out.Diverged = append(out.Diverged, d.Name)
	}
	for _, x := range []struct {
		runs []protocol.RunID
		what string
	}{
		{c.Ahead, "has gone on in %s, and stays as it is there"},
		{c.Deleted, "was deleted in %s, and is not brought back"},
		{c.Driven, "is driven: in %s it is as it was recorded by now"},
	} {
		for _, run := range x.runs {
			a.Progress("%s "+x.what, run, out.To)
		}
	}
	return a.Say(out, "copied to %s: %s, %d gone on with, %d there already; %s, %d bytes\n", out.To,
		protocol.Plural(len(c.Runs), "run"), len(c.Forwarded), c.Same, protocol.Plural(int(c.Blocks), "block"), c.Bytes)
}

// list is a list that is [] for programs where there is nothing in it.
func list[T any](x []T) []T {
	if x == nil {
		return []T{}
	}
	return x
}
