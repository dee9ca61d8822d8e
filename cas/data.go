package cas

import (
	"fmt"
	"reflect"

	"wf/protocol"
)

// DecodeData reads the data of an event as T. An event of another type is an error wrapping
// protocol.ErrInvalidBlock. Long texts are still links: protocol.ReadPayload reads them.
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

// textsOf copies d to where its texts can be reached: they are changed in place, while data
// travels by value. whole gives the copy in the form d came in; it is nil without texts.
func textsOf(d protocol.Data) (texts []*protocol.Text, whole func() protocol.Data) {
	v := reflect.ValueOf(d)
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
