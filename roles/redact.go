package roles

import (
	"bytes"
	"slices"
	"strings"
)

// lineMin is the length in bytes from which a single line of a secret of several lines, such
// as a private key, is hidden on its own.
const lineMin = 8

// A Redactor hides the values of secrets: each is replaced by [secret:NAME], also where it is
// written in JSON, in an address, in hexadecimal or, within whatever text, in Base64. What has the
// shape of a well-known kind of key, whoever it belongs to, is replaced by [redacted:KIND]. It
// works on a stream; what is cut in two by the border of a chunk is found all the same.
//
// The zero Redactor knows no secrets, only the shapes.
type Redactor struct {
	values []hidden // the longest first, so that a value that contains another one wins
	first  set      // the bytes with which values begin
	second set      // and those that follow
	held   []byte   // the end of the stream, where it may be the beginning of a value
	shaper shaper   // after the values were hidden
	plain  []byte   // what it is given
}

type hidden struct{ value, mark []byte }

// HasMark reports whether a text holds what a Redactor puts in the place of a secret.
func HasMark(s string) bool {
	return strings.Contains(s, "[secret:") || strings.Contains(s, "[redacted:")
}

// NewRedactor hides the given secrets, name → value. Empty values hide nothing.
func NewRedactor(secrets map[string]string) *Redactor {
	r := new(Redactor)
	for name, value := range secrets {
		mark := []byte("[secret:" + name + "]")
		trimmed := strings.TrimRight(value, "\r\n")
		for _, form := range forms(trimmed) {
			r.add(form, mark)
		}
		if lines := strings.Split(trimmed, "\n"); len(lines) > 1 {
			for _, line := range lines {
				if line = strings.TrimSpace(line); len(line) >= lineMin {
					r.add(line, mark)
				}
			}
		}
	}
	slices.SortFunc(r.values, func(a, b hidden) int {
		if n := len(b.value) - len(a.value); n != 0 {
			return n
		}
		if n := bytes.Compare(a.value, b.value); n != 0 {
			return n
		}
		return bytes.Compare(a.mark, b.mark)
	})
	return r
}

func (r *Redactor) add(value string, mark []byte) {
	if value != "" {
		r.values = append(r.values, hidden{[]byte(value), mark})
		r.first[value[0]] = true
		if len(value) > 1 {
			r.second[value[1]] = true
		} else {
			for c := range r.second {
				r.second[c] = true
			}
		}
	}
}

// String hides the secrets in a whole text.
func (r *Redactor) String(s string) string {
	once := Redactor{values: r.values, first: r.first, second: r.second}
	return string(once.Flush(once.Write(make([]byte, 0, len(s)), []byte(s))))
}

// Write appends to dst what of p, and of what was held before, is known to hold no secret.
func (r *Redactor) Write(dst, p []byte) []byte {
	if len(r.values) > 0 {
		in := append(r.held, p...)
		var rest []byte
		r.plain, rest = r.scan(r.plain[:0], in, false)
		r.held = append([]byte(nil), rest...)
		p = r.plain
	}
	return r.shaper.write(dst, p, false)
}

// Flush appends what was held; the stream has ended.
func (r *Redactor) Flush(dst []byte) []byte {
	r.plain, _ = r.scan(r.plain[:0], r.held, true)
	r.held = nil
	return r.shaper.write(dst, r.plain, true)
}

// scan appends the redacted in to dst. Unless the stream has ended it stops where a value may
// begin that is not yet complete, and gives back the rest.
func (r *Redactor) scan(dst, in []byte, ended bool) (out, rest []byte) {
	from := 0
	for i := 0; i < len(in); {
		if !r.first[in[i]] || i+1 < len(in) && !r.second[in[i+1]] {
			i++
			continue
		}
		found, wait := r.at(in[i:], ended)
		switch {
		case wait:
			return append(dst, in[from:i]...), in[i:]
		case found == nil:
			i++
		default:
			dst = append(append(dst, in[from:i]...), found.mark...)
			i += len(found.value)
			from = i
		}
	}
	return append(dst, in[from:]...), nil
}

// at finds the longest value that in begins with; wait says that a longer one may yet come.
func (r *Redactor) at(in []byte, ended bool) (found *hidden, wait bool) {
	for k := range r.values {
		v := &r.values[k]
		if bytes.HasPrefix(in, v.value) {
			return v, false
		}
		if !ended && len(in) < len(v.value) && bytes.HasPrefix(v.value, in) {
			return nil, true
		}
	}
	return nil, false
}
