package roles

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// A Redactor hides the values of secrets: each is replaced by [secret:NAME], also where it is
// written in JSON, in an address, in hexadecimal or, within whatever text, in Base64. What has the
// shape of a well-known kind of key, of any owner, is replaced by [redacted:KIND]. It
// works on a stream; what is cut in two by the border of a chunk is found all the same.
//
// The keys that were given to Conceal are secrets of every Redactor, also of one that was made
// before. The zero Redactor knows these and the shapes.
type Redactor struct {
	own    map[string]string
	known  atomic.Pointer[matcher] // of own and of what was concealed when it was made
	held   []byte                  // the end of the stream, where it may be the beginning of a value
	shaper shaper                  // after the values were hidden
	plain  []byte                  // what it is given
}

// matcher finds values. It does not change.
type matcher struct {
	values  []hidden  // the longest first, so that a value that contains another one wins
	first   set       // the bytes with which values begin
	second  [256]bits // and those that may follow each
	version uint64    // of what was concealed
}

type hidden struct {
	written
	mark []byte
	name string
}

// HasMark reports whether a text holds what a Redactor puts in the place of a secret.
func HasMark(s string) bool {
	return strings.Contains(s, "[secret:") || strings.Contains(s, "[redacted:")
}

// NewRedactor hides the given secrets, name → value. Empty values hide nothing.
func NewRedactor(secrets map[string]string) *Redactor {
	r := &Redactor{own: maps.Clone(secrets)}
	r.matcher()
	return r
}

// matcher is what finds the values, with those that were concealed meanwhile.
func (r *Redactor) matcher() *matcher {
	version := concealed.version.Load()
	if m := r.known.Load(); m != nil && m.version == version {
		return m
	}
	if len(r.own) == 0 {
		m := concealed.matcher()
		r.known.Store(m)
		return m
	}
	m := newMatcher(r.own, concealed.keys())
	m.version = version // keys that came meanwhile are found by the next call
	r.known.Store(m)
	return m
}

// newMatcher is for secrets, name → value, and keys, value → name.
func newMatcher(secrets, keys map[string]string) *matcher {
	m := new(matcher)
	for name, value := range secrets {
		m.addSecret(name, value)
	}
	for value, name := range keys {
		m.addSecret(name, value)
	}
	slices.SortFunc(m.values, func(a, b hidden) int {
		return cmp.Or(len(b.text)-len(a.text), strings.Compare(a.text, b.text), strings.Compare(a.name, b.name))
	})
	return m
}

func (m *matcher) addSecret(name, value string) {
	for _, text := range texts(value) {
		w := written{text, len(value) >= ShortSecret}
		m.values = append(m.values, hidden{w, []byte("[secret:" + name + "]"), name})
		w.begins(func(a byte, b *bits) {
			m.first[a] = true
			for i := range b {
				m.second[a][i] |= b[i]
			}
		})
	}
}

// String hides the secrets in a whole text.
func (r *Redactor) String(s string) string {
	var once Redactor
	once.own = r.own
	once.known.Store(r.matcher())
	return string(once.Flush(once.Write(make([]byte, 0, len(s)), []byte(s))))
}

// Find names the first secret in a text, or else the kind of the first key that has a well-known
// shape; both are "" where there is none.
func (r *Redactor) Find(s string) (name, kind string) {
	m, in := r.matcher(), []byte(s)
	for i := range in {
		if found, _, _ := m.at(in[i:], true); found != nil {
			return found.name, ""
		}
	}
	var keys shaper
	keys.write(nil, in, true)
	return "", keys.first
}

// Write appends to dst what of p, and of what was held before, is known to hold no secret.
func (r *Redactor) Write(dst, p []byte) []byte {
	if m := r.matcher(); len(m.values) > 0 || len(r.held) > 0 {
		in := append(r.held, p...)
		var rest []byte
		r.plain, rest = m.scan(r.plain[:0], in, false)
		r.held = in[:copy(in, rest)]
		p = r.plain
	}
	return r.shaper.write(dst, p, false)
}

// Flush appends what was held; the stream has ended.
func (r *Redactor) Flush(dst []byte) []byte {
	r.plain, _ = r.matcher().scan(r.plain[:0], r.held, true)
	r.held = nil
	return r.shaper.write(dst, r.plain, true)
}

// scan appends the redacted in to dst. Unless the stream has ended it stops where a value may
// begin that is not yet complete, and gives back the rest.
func (m *matcher) scan(dst, in []byte, ended bool) (out, rest []byte) {
	from := 0
	for i := 0; i < len(in); {
		if !m.first[in[i]] || i+1 < len(in) && !m.second[in[i]].has(in[i+1]) {
			i++
			continue
		}
		found, n, wait := m.at(in[i:], ended)
		switch {
		case wait:
			return append(dst, in[from:i]...), in[i:]
		case found == nil:
			i++
		default:
			dst = append(append(dst, in[from:i]...), found.mark...)
			i += n
			from = i
		}
	}
	return append(dst, in[from:]...), nil
}

// at finds the longest value that in begins with, and how many bytes it has there; wait says that a longer one may yet
// come.
func (m *matcher) at(in []byte, ended bool) (found *hidden, n int, wait bool) {
	if len(m.values) == 0 || len(in) > 1 && !m.second[in[0]].has(in[1]) {
		return nil, 0, false
	}
	for k := range m.values {
		v := &m.values[k]
		if n, wait = v.leads(in, ended); n > 0 || wait {
			return v, n, wait
		}
	}
	return nil, 0, false
}
