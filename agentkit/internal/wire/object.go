package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Object writes a JSON object with its members in the order they are added, nothing escaped
// for HTML: the same calls give the same bytes.
type Object struct {
	buf bytes.Buffer
	err error
}

// Add writes a member.
func (o *Object) Add(name string, v any) {
	if o.buf.Len() == 0 {
		o.buf.WriteByte('{')
	} else {
		o.buf.WriteByte(',')
	}
	key, err := json.Marshal(name)
	o.err = errors.Join(o.err, err)
	o.buf.Write(key)
	o.buf.WriteByte(':')
	value, err := Encode(v)
	if err != nil {
		o.err = errors.Join(o.err, fmt.Errorf("%s: %w", name, err))
	}
	o.buf.Write(value)
}

// Bytes is the object, and what could not be written.
func (o *Object) Bytes() ([]byte, error) {
	if o.buf.Len() == 0 {
		return []byte("{}"), o.err
	}
	return append(o.buf.Bytes(), '}'), o.err
}

// Encode is JSON without a newline and without escapes for HTML.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes()[:b.Len()-1], nil
}

// With adds members to an object, by their names in order.
func With(object []byte, members map[string]json.RawMessage) []byte {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		key, _ := Encode(name) // a string always has a JSON form
		if object = object[:len(object)-1]; len(object) > 1 {
			object = append(object, ',')
		}
		object = append(append(append(append(object, key...), ':'), members[name]...), '}')
	}
	return object
}

// Self names the address, and with it the wire, and the model that a reply belongs to, without telling where that is.
func Self(url, id string) string { return Key([]byte(url + " " + id))[:16] }
