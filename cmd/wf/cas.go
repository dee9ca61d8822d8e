package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/cmd/internal/render"
	"wf/protocol"
)

func newCas(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cas",
		Short: "Put, get and look at single blocks",
		Example: `  echo '{"hello":"world"}' | wf cas put --codec dag-json
  wf cas get bafyrei… | xxd`,
		Args: known,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCasPut(a), newCasGet(a), newCasShow(a), newCasImport(a))
	return cmd
}

func newCasPut(a *app) *cobra.Command {
	var codec string
	cmd := &cobra.Command{
		Use:   "put",
		Short: "Store a block from stdin, and write its CID",
		Long: `Store a block from stdin, and write its CID. dag-cbor is kept as it is and must be strict; dag-json is
written as DAG-CBOR; raw takes any bytes. Bad input tells the byte and the rule, and exits 1.`,
		Example: `  printf 'hello' | wf cas put --codec raw
  echo '{"a":1}' | wf cas put --codec dag-json
  wf cas put < block.cbor`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.casPut(cmd.Context(), codec) },
	}
	cmd.Flags().StringVar(&codec, "codec", "dag-cbor", "what the bytes are: dag-cbor, dag-json or raw")
	return cmd
}

func (a *app) casPut(ctx context.Context, codec string) error {
	data, err := io.ReadAll(a.in)
	if err != nil {
		return fmt.Errorf("stdin: %w", err)
	}
	block, err := cas.Put(codec, data)
	if err != nil {
		return err
	}
	s, err := a.OpenStore(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(s.Commit(ctx, cas.Batch{Blocks: []cas.Block{block}}), s.Close()); err != nil {
		return err
	}
	if a.AsJSON() {
		return a.Answer(render.NewBlockJSON(block.Link, block.Data))
	}
	_, err = fmt.Fprintln(a.Out, block.Link)
	return err
}

func newCasGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "get CID",
		Short: "Write the bytes of a block to stdout",
		Example: `  wf cas get bafyreigh2akiscaildc… > block.cbor
  wf cas get gh2akisc | xxd`,
		Args:        takes(1, 1, "a CID"),
		Annotations: map[string]string{formatsKey: "human"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withBlock(cmd.Context(), args[0], func(_ protocol.Link, data []byte) error {
				_, err := a.Out.Writer.Write(data)
				return err
			})
		},
	}
}

func newCasShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show CID",
		Short:   "Show a block: a record as DAG-JSON, a payload as text",
		Example: `  wf cas show gh2akisc`,
		Args:    takes(1, 1, "a CID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withBlock(cmd.Context(), args[0], a.ShowBlock)
		},
	}
}

// withBlock finds a block by its CID or a part of it.
func (a *app) withBlock(ctx context.Context, arg string, f func(protocol.Link, []byte) error) error {
	return a.WithStore(ctx, func(s *cas.Store) error {
		at, err := a.resolve(ctx, s, arg)
		if err != nil {
			return err
		}
		if !at.Block.Defined() {
			return usagef("%s is a run, a CID is wanted; wf show %s shows it", written(arg), at)
		}
		data, err := s.Block(ctx, at.Block)
		if err != nil {
			return err
		}
		return f(at.Block, data)
	})
}

func newCasImport(a *app) *cobra.Command {
	c := newImport(a)
	c.Short = "Read an archive; the same as wf import"
	c.Example = strings.ReplaceAll(c.Example, " import ", " cas import ")
	return c
}

func newImport(a *app) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "import FILE.car",
		Short: "Read a run from a CAR archive",
		Long: `Read a CAR archive into the store. Every block must match its CID; a run comes in only once the whole of
it was verified, under its own id, and with the runs of its sub-workflows. A run that is there already goes on
where the archive holds more of it; it is never overwritten. - reads from stdin.`,
		Example: `  wf import run.car
  wf export -1 | wf --store /tmp/copy import -`,
		Args: takes(1, 1, "a CAR file"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.importCAR(cmd.Context(), args[0], name) },
	}
	cmd.Flags().StringVar(&name, "run", "", "another id for the imported run (default: its own)")
	return cmd
}

func (a *app) importCAR(ctx context.Context, path, name string) error {
	in := a.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return usagef("%v", err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return usagef("%s is a directory; name an archive in it", path)
		}
		in = f
	}
	s, err := a.OpenStore(ctx)
	if err != nil {
		return err
	}
	var held []func() error // locks of runs that go on to the head of the archive
	got, err := cas.Import(ctx, in, s, cas.ImportOptions{Run: protocol.RunID(name), Before: func(forwarded []protocol.RunID) error {
		for _, run := range forwarded {
			unlock, err := s.LockRun(run)
			if err != nil {
				return err
			}
			held = append(held, unlock)
		}
		return a.Pins(s).Disown(ctx, forwarded)
	}})
	for _, unlock := range held {
		err = errors.Join(err, unlock())
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return importHint(err, path)
	}
	if a.AsJSON() {
		return a.Answer(importJSON{"wf.import/v1", nonNil(got.Runs), linkStrings(got.Roots), got.Blocks, got.Bytes, got.Children, got.Forwarded, got.Held})
	}
	for _, run := range got.Runs {
		fmt.Fprintln(a.Out, run)
	}
	if n := len(got.Children); n > 0 {
		a.Progress("with it came %s of sub-workflows", protocol.Plural(n, "run"))
	}
	for _, run := range got.Forwarded {
		a.Progress("run %s was there, and went on to the head of the archive", run)
	}
	for _, run := range got.Held {
		a.Progress("run %s was there already", run)
	}
	if len(got.Runs) == 0 {
		for _, root := range got.Roots {
			fmt.Fprintln(a.Out, root)
		}
	}
	a.Progress("imported %d blocks, %d bytes", got.Blocks, got.Bytes)
	return nil
}

// importHint has a fault of the archive name what tells more: the hint of its code is for a
// store.
func importHint(err error, path string) error {
	if !errors.As(err, new(*cas.CARError)) && !errors.Is(err, protocol.ErrVerify) {
		return err
	}
	hint := "export the run again"
	if path != "-" {
		hint = "wf verify " + path + " names every fault; export the run again"
	}
	return &protocol.Error{Code: protocol.CodeOf(err), Message: err.Error(), Hint: hint}
}

type importJSON struct {
	Schema string           `json:"schema"`
	Runs   []protocol.RunID `json:"runs"`
	Roots  []string         `json:"roots"`
	Blocks int64            `json:"blocks"`
	Bytes  int64            `json:"bytes"`

	Children  []protocol.RunID `json:"children,omitempty"`  // runs of sub-workflows
	Forwarded []protocol.RunID `json:"forwarded,omitempty"` // of both: were there, and went on
	Held      []protocol.RunID `json:"held,omitempty"`      // of both: were there with all that came in
}

func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func linkStrings(links []protocol.Link) []string {
	out := make([]string, len(links))
	for i, l := range links {
		out[i] = l.String()
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
