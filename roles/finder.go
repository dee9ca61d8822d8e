package roles

import "bytes"

// A Finder tells whether a stream of bytes holds a secret, by the rules of a Redactor: what one would replace.
type Finder struct {
	redact *Redactor
	behind []byte // what was written and has not come out
	out    []byte
	found  bool
}

// NewFinder finds the given secrets, name → value, beside those that every Redactor hides.
func NewFinder(secrets map[string]string) *Finder { return &Finder{redact: NewRedactor(secrets)} }

// Write looks at more of the stream. It never fails.
func (f *Finder) Write(p []byte) (int, error) {
	if !f.found {
		f.behind = append(f.behind, p...)
		f.came(f.redact.Write(f.out[:0], p))
	}
	return len(p), nil
}

// Close ends the stream: found is "" where it holds no secret.
func (f *Finder) Close() (found string) {
	if !f.found {
		f.came(f.redact.Flush(f.out[:0]))
	}
	if f.found || len(f.behind) > 0 {
		return "a secret"
	}
	return ""
}

// came compares what the Redactor lets through with what it was given.
func (f *Finder) came(out []byte) {
	f.out = out
	rest, same := bytes.CutPrefix(f.behind, out)
	if f.found = !same; !f.found {
		f.behind = append(f.behind[:0], rest...)
	}
}
