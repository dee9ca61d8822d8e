package cas

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/fxamacker/cbor/v2"
	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// A cid.Cid is a BinaryMarshaler, so the encoder would write it as a byte string: the block
// would hold no link, and gc and export would lose the target without an error.

var (
	cidType       = reflect.TypeFor[cid.Cid]()
	marshalerType = reflect.TypeFor[cbor.Marshaler]()
)

// shape is what the static type tells: it can never hold a bare CID, it may (behind an
// interface), or it does.
type shape uint8

const (
	free shape = iota
	dynamic
	bare
)

var shapes sync.Map // reflect.Type → shape

func shapeOf(t reflect.Type) shape {
	if s, ok := shapes.Load(t); ok {
		return s.(shape)
	}
	s := inspectType(t, map[reflect.Type]bool{})
	shapes.Store(t, s)
	return s
}

func inspectType(t reflect.Type, seen map[reflect.Type]bool) shape {
	switch {
	case t == cidType:
		return bare
	case seen[t] || t.Implements(marshalerType) || reflect.PointerTo(t).Implements(marshalerType):
		return free // it writes itself, or is looked at already
	}
	seen[t] = true
	worst := free
	switch t.Kind() {
	case reflect.Interface:
		return dynamic
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return inspectType(t.Elem(), seen)
	case reflect.Map:
		return max(inspectType(t.Key(), seen), inspectType(t.Elem(), seen))
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() || f.Anonymous {
				worst = max(worst, inspectType(f.Type, seen))
			}
		}
	}
	return worst
}

// refuseBareCID looks for a cid.Cid in v; only values behind interfaces cost a walk.
func refuseBareCID(v reflect.Value) error {
	if !v.IsValid() {
		return nil
	}
	switch shapeOf(v.Type()) {
	case free:
		return nil
	case bare:
		return fmt.Errorf("a bare cid.Cid in %s would be written as bytes, use protocol.Link: %w", v.Type(), protocol.ErrInvalidBlock)
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		return refuseBareCID(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := refuseBareCID(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := refuseBareCID(it.Value()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				if err := refuseBareCID(v.Field(i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
