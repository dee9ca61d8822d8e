package cas

import (
	"errors"
	"fmt"

	"github.com/ipfs/go-cid"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

// Put makes a block of bytes that come from outside. codec is
//
//	dag-cbor   strict DAG-CBOR, kept as it is
//	dag-json   transcoded: the block is the DAG-CBOR of the same value
//	raw        any bytes
//
// It is the general codec: any valid value passes, also one that a record of ours could not
// hold. The error names the byte offset and the rule, and wraps protocol.ErrInvalidBlock; an
// unknown codec wraps protocol.ErrUsage.
func Put(codec string, data []byte) (Block, error) {
	switch codec {
	case "raw":
		return Raw(data), nil
	case "dag-cbor":
		if err := dagcbor.Check(data); err != nil {
			return Block{}, invalid(err)
		}
		return Block{linkTo(cid.DagCBOR, data), data}, nil
	case "dag-json":
		out, err := dagcbor.FromJSON(data)
		if err != nil {
			return Block{}, invalid(err)
		}
		if err := dagcbor.Check(out); err != nil {
			return Block{}, fmt.Errorf("as DAG-CBOR: %w", invalid(err))
		}
		return Block{linkTo(cid.DagCBOR, out), out}, nil
	}
	return Block{}, fmt.Errorf("codec %q (want dag-cbor, dag-json or raw): %w", codec, protocol.ErrUsage)
}

// ToJSON shows a DAG-CBOR block as DAG-JSON; see dagcbor.ToJSON. Bytes that are not strict DAG-CBOR
// are an error wrapping protocol.ErrInvalidBlock.
func ToJSON(data []byte) ([]byte, error) {
	out, err := dagcbor.ToJSON(data)
	return out, invalid(err)
}

// fault is a fault of bytes that were to be a block. It wraps protocol.ErrInvalidBlock.
type fault struct{ *dagcbor.Fault }

// Unwrap gives protocol.ErrInvalidBlock and the fault.
func (f fault) Unwrap() []error { return []error{protocol.ErrInvalidBlock, f.Fault} }

// invalid makes a fault of what dagcbor says.
func invalid(err error) error {
	if f, ok := errors.AsType[*dagcbor.Fault](err); ok {
		return fault{f}
	}
	return err
}
