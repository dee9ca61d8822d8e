// Command oracle walks an archive of wf from its root to the first event, with readers that
// are not wf's: github.com/ipld/go-car and go-ipld-prime. It is a module of its own, so that
// wf does not depend on them.
//
// It reads a CAR file from standard input and prints a line for each event, newest first:
// seq, type, CID. A link that leads nowhere, a chain that does not end at seq 1, or bytes that
// do not match their CID end it with status 1.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ipfs/go-cid"
	carv2 "github.com/ipld/go-car/v2"
	"github.com/ipld/go-ipld-prime/codec/dagcbor"
	"github.com/ipld/go-ipld-prime/datamodel"
	cidlink "github.com/ipld/go-ipld-prime/linking/cid"
	"github.com/ipld/go-ipld-prime/node/basicnode"
	"github.com/ipld/go-ipld-prime/traversal"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	err := walk(os.Stdin, out)
	if err := errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func walk(in io.Reader, out io.Writer) error {
	car, err := carv2.NewBlockReader(in) // hashes every block
	if err != nil {
		return err
	}
	if len(car.Roots) == 0 {
		return errors.New("no roots")
	}
	blocks := map[cid.Cid][]byte{}
	for {
		b, err := car.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		blocks[b.Cid()] = b.RawData()
	}
	if err := complete(car.Roots, blocks); err != nil {
		return err
	}
	want := int64(-1)
	for next := car.Roots[0]; ; {
		n, err := decode(blocks[next])
		if err != nil {
			return fmt.Errorf("%s: %w", next, err)
		}
		kind, err := text(n, "kind")
		if err != nil || kind != "event" {
			return fmt.Errorf("%s is a %q, not an event: %v", next, kind, err)
		}
		typ, err := text(n, "type")
		if err != nil {
			return fmt.Errorf("%s: %w", next, err)
		}
		seqNode, err := n.LookupByString("seq")
		if err != nil {
			return fmt.Errorf("%s: %w", next, err)
		}
		seq, err := seqNode.AsInt()
		if err != nil || want >= 0 && seq != want {
			return fmt.Errorf("%s has seq %d, want %d: %v", next, seq, want, err)
		}
		want = seq - 1
		fmt.Fprintln(out, seq, typ, next)
		prev, err := n.LookupByString("prev")
		if err != nil {
			return fmt.Errorf("%s: %w", next, err)
		}
		if prev.IsNull() {
			if seq != 1 {
				return fmt.Errorf("the chain ends at seq %d", seq)
			}
			return nil
		}
		l, err := prev.AsLink()
		if err != nil {
			return fmt.Errorf("%s: prev: %w", next, err)
		}
		next = l.(cidlink.Link).Cid
	}
}

// complete follows every link from the roots on, and finds as many blocks as there are.
func complete(roots []cid.Cid, blocks map[cid.Cid][]byte) error {
	done := map[cid.Cid]bool{}
	for todo := append([]cid.Cid(nil), roots...); len(todo) > 0; {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if done[c] {
			continue
		}
		done[c] = true
		data, ok := blocks[c]
		if !ok {
			return fmt.Errorf("block %s is not in the archive", c)
		}
		if c.Type() != cid.DagCBOR {
			continue
		}
		n, err := decode(data)
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		links, err := traversal.SelectLinks(n)
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		for _, l := range links {
			todo = append(todo, l.(cidlink.Link).Cid)
		}
	}
	if len(done) != len(blocks) {
		return fmt.Errorf("the archive has %d blocks, the roots lead to %d", len(blocks), len(done))
	}
	return nil
}

func decode(data []byte) (datamodel.Node, error) {
	b := basicnode.Prototype.Any.NewBuilder()
	if err := dagcbor.Decode(b, bytes.NewReader(data)); err != nil {
		return nil, err
	}
	return b.Build(), nil
}

func text(n datamodel.Node, key string) (string, error) {
	v, err := n.LookupByString(key)
	if err != nil {
		return "", err
	}
	return v.AsString()
}
