package cas

import (
	"context"
	"fmt"
	"reflect"

	"wf/protocol"
)

// DecodeData reads the data of an event as T. An event of another type is an error wrapping
// protocol.ErrInvalidBlock. Long texts are still links: see ResolveTexts.
func DecodeData[T protocol.Data](e *protocol.Event) (T, error) {
	var d T
	if d.EventType() != e.Type {
		return d, fmt.Errorf("event %d is %s, not %s: %w", e.Seq, e.Type, d.EventType(), protocol.ErrInvalidBlock)
	}
	if err := Decode(e.Data, &d); err != nil {
		return d, fmt.Errorf("event %d, %s: %w", e.Seq, e.Type, err)
	}
	return d, nil
}

// AnyData reads the data of an event of whatever type; nil for a type that this binary does not
// know. Long texts are still links.
func AnyData(e *protocol.Event) (protocol.Data, error) {
	spec := e.Type.Spec()
	if spec == nil {
		return nil, nil
	}
	into, data := spec.New()
	if into == nil {
		return nil, nil
	}
	if err := Decode(e.Data, into); err != nil {
		return nil, fmt.Errorf("event %d, %s: %w", e.Seq, e.Type, err)
	}
	return data(), nil
}

// ResolveTexts gives d with the texts that were moved to blocks fetched into Text.S; Link
// stays, so that the data can be written again as it was. d itself is not changed.
func ResolveTexts[T protocol.Data](ctx context.Context, from protocol.Blocks, d T) (T, error) {
	texts, whole := textsOf(d)
	for _, t := range texts {
		if !t.Link.Defined() || t.S != "" {
			continue
		}
		b, err := protocol.ReadPayload(ctx, from, t.Link)
		if err != nil {
			return d, fmt.Errorf("text of %s: %w", d.EventType(), err)
		}
		t.S = string(b)
	}
	if whole == nil {
		return d, nil
	}
	return whole().(T), nil
}

// textsOf copies d to where its texts can be reached: they are changed in place, while data
// travels by value. whole gives the copy in the form d came in; it is nil without texts.
func textsOf(d protocol.Data) (texts []*protocol.Text, whole func() protocol.Data) {
	v := valueOf(d)
	pointed := v.Kind() == reflect.Pointer
	if pointed {
		v = v.Elem()
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	if texts = protocol.Texts(p.Interface()); texts == nil {
		return nil, nil
	}
	return texts, func() protocol.Data {
		if pointed {
			return p.Interface().(protocol.Data)
		}
		return p.Elem().Interface().(protocol.Data)
	}
}

func valueOf(d protocol.Data) reflect.Value { return reflect.ValueOf(d) }
