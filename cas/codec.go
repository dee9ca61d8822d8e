package cas

import (
	"crypto/sha256"
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"
	"github.com/ipfs/go-cid"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

// Block is immutable bytes with their name. Link is the CIDv1 over sha2-256 of Data, with the
// codec dag-cbor for records and raw for payloads.
type Block struct {
	Link protocol.Link
	Data []byte
}

// Raw names payload bytes. The block keeps data; the caller must not change it.
func Raw(data []byte) Block { return Block{linkTo(cid.Raw, data), data} }

// linkTo hashes data.
func linkTo(codec byte, data []byte) protocol.Link {
	sum := sha256.Sum256(data)
	return linkOf(codec, sum[:])
}

// encMode writes DAG-CBOR. Canonical and CoreDet of the library shorten floats and are not it.
//
// A cid.Cid writes itself as a byte string: the block would hold no link, and gc and export would lose
// the target without an error. So it gets a tag that the scan of a block refuses.
var encMode = must(cbor.EncOptions{
	Sort:          cbor.SortLengthFirst, // bytewise order, as keys are text only
	ShortestFloat: cbor.ShortestFloatNone,
	NaNConvert:    cbor.NaNConvertReject,
	InfConvert:    cbor.InfConvertReject,
	BigIntConvert: cbor.BigIntConvertShortest,
	IndefLength:   cbor.IndefLengthForbidden,
	NilContainers: cbor.NilContainerAsNull,
	Time:          cbor.TimeRFC3339Nano,
	TimeTag:       cbor.EncTagNone,
	TagsMd:        cbor.TagsAllowed,
}.EncModeWithTags(bareCIDs()))

var decMode = must(cbor.DecOptions{
	DupMapKey:         cbor.DupMapKeyEnforcedAPF,
	IndefLength:       cbor.IndefLengthForbidden,
	IntDec:            cbor.IntDecConvertSignedOrBigInt,
	MapKeyByteString:  cbor.MapKeyByteStringForbidden,
	DefaultMapType:    reflect.TypeFor[map[string]any](),
	UTF8:              cbor.UTF8RejectInvalid,
	FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
	BignumTag:         cbor.BignumTagForbidden,
	NaN:               cbor.NaNDecodeForbidden,
	Inf:               cbor.InfDecodeForbidden,
	SimpleValues:      only20to22(),
	MaxNestedLevels:   dagcbor.MaxDepth + 1, // a link in the deepest list is one level more
	TagsMd:            cbor.TagsAllowed,
}.DecMode())

// bareCIDs gives a cid.Cid that is not within a protocol.Link a tag that is not 42.
func bareCIDs() cbor.TagSet {
	tags := cbor.NewTagSet()
	if err := tags.Add(cbor.TagOptions{EncTag: cbor.EncTagRequired}, reflect.TypeFor[cid.Cid](), 43); err != nil {
		panic("cas: " + err.Error())
	}
	return tags
}

// only20to22 rejects every simple value but false, true and null.
func only20to22() *cbor.SimpleValueRegistry {
	var reject []func(*cbor.SimpleValueRegistry) error
	for v := range 256 {
		if v < 20 || v == 23 || v > 31 { // 24 to 31 are no legal numbers
			reject = append(reject, cbor.WithRejectedSimpleValue(cbor.SimpleValue(v)))
		}
	}
	return must(cbor.NewSimpleValueRegistryFromDefaults(reject...))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic("cas: " + err.Error())
	}
	return v
}

// Encode makes the block of a record: strict DAG-CBOR, and, for one of our kinds, within the
// record profile (see profile.go). Links must be protocol.Link values, a bare cid.Cid is refused.
// Errors wrap protocol.ErrInvalidBlock.
func Encode(record any) (Block, error) {
	data, err := Marshal(record)
	if err != nil {
		return Block{}, err
	}
	if err := profile(data); err != nil {
		return Block{}, fmt.Errorf("encode %T: %w", record, err)
	}
	return Block{linkTo(cid.DagCBOR, data), data}, nil
}

// Marshal writes a value that is no block, since nothing links to it: DAG-CBOR as Encode writes it,
// neither scanned nor named. Decode reads it. Errors wrap protocol.ErrInvalidBlock.
func Marshal(v any) ([]byte, error) {
	b, err := encMode.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w: %w", v, protocol.ErrInvalidBlock, err)
	}
	return b, nil
}

// Decode reads the bytes of a stored block into a record. Unknown keys are ignored, missing
// ones stay zero. It does not scan again: stored blocks were scanned when they were written.
// Errors wrap protocol.ErrInvalidBlock.
func Decode(data []byte, into any) error {
	if err := decMode.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decode %T: %w: %w", into, protocol.ErrInvalidBlock, err)
	}
	return nil
}

// Check re-hashes data. A mismatch is an error wrapping protocol.ErrCorrupt that gives both
// CIDs; a CID that is not of this store's form is checked with its own hash function.
func Check(l protocol.Link, data []byte) error {
	if !l.Defined() {
		return fmt.Errorf("check block: no CID: %w", protocol.ErrCorrupt)
	}
	if b := l.CID().KeyString(); len(b) == 36 && b[0] == 1 && b[2] == 0x12 && b[3] == 32 {
		if sum := sha256.Sum256(data); b[4:] == string(sum[:]) {
			return nil
		}
		return &Mismatch{l, linkTo(b[1], data)}
	}
	got, err := l.CID().Prefix().Sum(data)
	if err != nil {
		return fmt.Errorf("check block %s: %w: %w", l, protocol.ErrCorrupt, err)
	}
	if !got.Equals(l.CID()) {
		return &Mismatch{l, protocol.NewLink(got)}
	}
	return nil
}

// Mismatch is a block with bytes of another hash than its name. It wraps
// protocol.ErrCorrupt.
type Mismatch struct{ Expected, Actual protocol.Link }

func (e *Mismatch) Error() string {
	return fmt.Sprintf("block %s: its bytes hash to %s", e.Expected, e.Actual)
}

// Unwrap gives protocol.ErrCorrupt.
func (e *Mismatch) Unwrap() error { return protocol.ErrCorrupt }
