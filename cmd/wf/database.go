package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/store"
)

// databaseArg is the address of a database on a command line, else that of the store in use.
func (a *app) databaseArg(args []string) (string, error) {
	if len(args) == 1 {
		if !store.IsDatabase(args[0]) {
			return "", usagef("%s is no address of a database; want postgres://USER@HOST:PORT/NAME", args[0])
		}
		return args[0], nil
	}
	name, where, err := a.StoreName()
	if err == nil && !store.IsDatabase(name) {
		err = usagef("%s (%s) is a directory, which is made when it is first used; name a database, postgres://USER@HOST:PORT/NAME", name, where)
	}
	return name, err
}

func newStoreInit(a *app) *cobra.Command {
	var r store.Roles
	cmd := &cobra.Command{
		Use:   "init [postgres://…]",
		Short: "Make a store in an empty database",
		Long: `Make a store in a PostgreSQL database: the tables of the schema wf, as the user of the address, who owns
them. Where there is one already nothing changes but the rights of roles. A password is read from the file of PGPASSFILE
(~/.pgpass) or a service file, never from the address. Beyond this machine the address says sslmode=verify-full.`,
		Example: `  wf store init postgres://wf@localhost/wf

  # the processes that drive runs remove nothing; a role of its own does
  wf store init 'postgres://owner@db.example.com/wf?sslmode=verify-full' --worker wf_worker --gc wf_gc --reader wf_reader`,
		Args: takes(0, 1, "the address of a database"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeDatabase(cmd.Context(), args, "the store of %s has layout %d, id %s\n",
				func(ctx context.Context, name string) (store.Meta, error) { return store.Init(ctx, name, r) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.Worker, "worker", "", "role of processes that drive runs: it may remove neither blocks nor lines of the reflog")
	flags.StringVar(&r.GC, "gc", "", "role that collects what no run reaches")
	flags.StringVar(&r.Reader, "reader", "", "role that reads")
	return cmd
}

func newStoreMigrate(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate [postgres://…]",
		Short: "Bring a store in a database to the layout of this wf",
		Long: `Bring the store in a PostgreSQL database to the layout of this wf, as the owner of its tables. One that has this
layout, or a later one, stays as it is. Where an older wf may not write any more behind it, its processes end within
seconds, and are waited for; what they drove goes on at those of this wf.`,
		Example: `  wf store migrate postgres://owner@localhost/wf`,
		Args:    takes(0, 1, "the address of a database"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeDatabase(cmd.Context(), args, "the store of %s has layout %d, id %s\n", func(ctx context.Context, name string) (store.Meta, error) {
				return store.Migrate(ctx, name, a.Tell)
			})
		},
	}
}

func (a *app) changeDatabase(ctx context.Context, args []string, say string, change func(context.Context, string) (store.Meta, error)) error {
	name, err := a.databaseArg(args)
	if err != nil {
		return err
	}
	m, err := change(ctx, name)
	if err != nil {
		return err
	}
	return a.Say(map[string]any{"schema": "wf.database/v1", "store": store.Shown(name), "layout": m.Layout, "min_writer": m.MinWriter, "id": m.UUID},
		say, store.Shown(name), m.Layout, m.UUID)
}

func newStoreCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check [postgres://…]",
		Short: "See whether a database is fit for a store, and what its settings are",
		Long: `See whether a PostgreSQL database can be reached, has a store of this layout, and loses nothing by its settings, for
the user of the address and through whatever pooler it leads. Nothing is changed. The status is 5 where a store
would not be opened.`,
		Example: `  wf store check postgres://wf@localhost/wf
  wf store check -o json`,
		Args: takes(0, 1, "the address of a database"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.databaseArg(args)
			if err != nil {
				return err
			}
			r, err := store.Check(cmd.Context(), name)
			if err != nil {
				return err
			}
			return a.toldDatabase(name, r)
		},
	}
}

// databaseJSON is what wf store check says to programs.
type databaseJSON struct {
	Schema   string         `json:"schema"`
	Store    string         `json:"store"`
	OK       bool           `json:"ok"`
	Version  string         `json:"version"`
	ID       string         `json:"id,omitempty"`
	Layout   int            `json:"layout,omitempty"`
	Findings []databaseFind `json:"findings"`
}

type databaseFind struct {
	Setting string `json:"setting"`
	Actual  string `json:"actual"`
	Want    string `json:"want"`
	Fatal   bool   `json:"fatal"`
}

// toldDatabase tells what a check found; a finding with which a store is not opened is an error.
func (a *app) toldDatabase(name string, r store.Report) error {
	out := databaseJSON{Schema: "wf.database-check/v1", Store: store.Shown(name), OK: true, Version: r.Version, ID: r.Meta.UUID, Layout: r.Meta.Layout, Findings: []databaseFind{}}
	rows := [][]string{{"server", r.Version}}
	if r.Meta.UUID != "" {
		rows = append(rows, []string{"store", fmt.Sprintf("layout %d, id %s", r.Meta.Layout, r.Meta.UUID)})
	}
	for _, f := range r.Findings {
		out.OK = out.OK && !f.Fatal
		out.Findings = append(out.Findings, databaseFind(f))
		word := "note"
		if f.Fatal {
			word = "bad"
		}
		rows = append(rows, []string{word, f.String()})
	}
	var err error
	if a.AsJSON() {
		err = a.Answer(out)
	} else {
		err = render.Table(a.Out, rows)
	}
	if err == nil && !out.OK {
		err = protocol.ErrStore.With("put right what is called bad", "%s is not fit for a store", out.Store)
	}
	return err
}
