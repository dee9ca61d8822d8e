package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/store"
)

func newCas(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "cas",
		Short: "Put, get and look at single blocks",
		Example: `  echo '{"hello":"world"}' | wf cas put --codec dag-json
  wf cas get bafyrei… | xxd`,
	}, newCasPut(a), newCasGet(a), newCasShow(a), newCasImport(a))
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			data, err := io.ReadAll(a.in)
			if err != nil {
				return fmt.Errorf("stdin: %w", err)
			}
			block, err := cas.Put(codec, data)
			if err != nil {
				return err
			}
			err = a.WithNewStore(ctx, func(s store.Store) error { return s.Commit(ctx, cas.Batch{Blocks: []cas.Block{block}}) })
			if err != nil {
				return err
			}
			return a.Say(render.NewBlockJSON(block.Link, block.Data), "%s\n", block.Link)
		},
	}
	cmd.Flags().StringVar(&codec, "codec", "dag-cbor", "what the bytes are: dag-cbor, dag-json or raw")
	return cmd
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
	return a.WithStore(ctx, func(s store.Store) error {
		at, err := a.atStore(s).find(ctx, arg)
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
