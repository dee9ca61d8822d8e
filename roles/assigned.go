package roles

import (
	"bytes"
	"slices"
	"strings"

	"wf/protocol/lazy"
)

// Values that a name is given: DB_PASSWORD=…, "client_secret": "…", api_key: ….

const (
	assignMax = 32  // separators between a name and its value
	valueMax  = 512 // characters of a value
)

var (
	quotedSet   = without("\"'`\\")
	unquotedSet = without("\"'`\\,;&|()[]{}<>")
	endsValue   = setOf(" \t\r\n\x1b\"'`\\,;&|)]}")
)

// A value is what stands behind a name. quoted says that it is a string, variable that the name is one of a shell.
type value struct {
	begin, end       int
	body             []byte
	quoted, variable bool
}

// assigned is the value of the name that stands at a place, n bytes long; ok is false where
// there is none, or it is a placeholder or the beginning of an expression.
func (p *passage) assigned(at, n int) (v value, ok bool) {
	v.begin = p.run(at+n, between, assignMax)
	signs := string(p.in[at+n : v.begin])
	if !strings.ContainsAny(signs, ":=") || strings.Contains(signs, "==") {
		return v, false
	}
	v.variable = signs[0] == '=' && !strings.ContainsAny(signs, " \t") && p.in[at+1] >= 'A' && p.in[at+1] <= 'Z'
	of := unquotedSet
	if v.quoted = strings.HasSuffix(signs, `"`) || strings.HasSuffix(signs, "'"); v.quoted {
		of = quotedSet
	}
	v.end = p.run(v.begin, of, valueMax)
	switch {
	case v.end == v.begin, v.end == len(p.in):
	case v.quoted && !p.has(v.end, "\"'\\"), !v.quoted && !endsValue[p.in[v.end]]:
		return v, false // a text of several words, or a call
	}
	for !v.quoted && v.end > v.begin && p.in[v.end-1] == '.' {
		v.end-- // the end of a sentence
	}
	v.body = p.in[v.begin:v.end]
	if isPlaceholder(v.body, nil) || p.has(v.begin, "<{/~.-") || bytes.Contains(v.body, []byte("${")) || bytes.Contains(v.body, []byte("://")) {
		return v, false
	}
	return v, !p.ofItsOwn(v.begin) // else it is found where it begins, under its own kind
}

// ofItsOwn judges whether what begins at a place is a key by its own form, whatever its name.
func (p *passage) ofItsOwn(at int) bool {
	return at+1 < len(p.in) && slices.ContainsFunc(byPrefix().at(p.in, at), func(s *shape) bool {
		if s.name || s.find != nil || !p.begins(at, s.prefix) {
			return false
		}
		_, to := s.run(p, at, len(s.prefix))
		return to > 0
	})
}

// mixed reports whether a value is so long, with letters and digits well mixed.
func (v value) mixed(long int) bool {
	return len(v.body) >= long && changes(v.body) >= 4 && (v.quoted || !expression().Match(v.body))
}

// valued finds the value of a name, where that fits.
func valued(fits func(v value) bool) finder {
	return func(p *passage, at, n int) (from, to int) {
		if v, ok := p.assigned(at, n); ok && fits(v) {
			return v.begin, v.end
		}
		return 0, 0
	}
}

// assignedSecret is a long value of letters and digits well mixed.
func assignedSecret(v value) bool { return v.mixed(16) }

// tokenMin is the length of a value from which assignedToken takes it for a token.
const tokenMin = 12

// assignedToken is the value of a name that only tokens have.
func assignedToken(v value) bool {
	return len(v.body) >= tokenMin && (v.quoted || !expression().Match(v.body))
}

// bootstrapToken is the form of a token by which a node joins a cluster.
var bootstrapToken = lazy.Regexp(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// assignedPassword is the value of a variable of the environment, or one that is no word.
func assignedPassword(v value) bool {
	mixes := changes(v.body)
	return v.variable && len(v.body) >= 6 ||
		len(v.body) >= 8 && (mixes > 2 || mixes == 2 && manyClasses(v.body)) && (v.quoted || !expression().Match(v.body))
}

// expression is a name of a program with its fields.
var expression = lazy.Regexp(`^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$`)

// changes is how often a digit follows what is none, or the other way round.
func changes(b []byte) int {
	n, last := 0, false
	for i, c := range b {
		digit := c >= '0' && c <= '9'
		if i > 0 && digit != last {
			n++
		}
		last = digit
	}
	return n
}

// manyClasses reports whether there are three of capitals, small letters, digits and signs;
// signs that part words do not count.
func manyClasses(b []byte) bool {
	var classes [4]int
	for _, c := range b {
		switch {
		case c >= 'A' && c <= 'Z':
			classes[0] = 1
		case c >= 'a' && c <= 'z':
			classes[1] = 1
		case c >= '0' && c <= '9':
			classes[2] = 1
		case strings.IndexByte("_-./:", c) < 0:
			classes[3] = 1
		}
	}
	return classes[0]+classes[1]+classes[2]+classes[3] >= 3
}

// kubernetesToken is the value of token: where that begins a line, as in a kubeconfig.
func kubernetesToken(p *passage, at, n int) (from, to int) {
	i := at
	for i > max(0, at-contextMax) && p.has(i-1, " \t") {
		i--
	}
	if i > 0 && p.in[i-1] != '\n' && !(i > 1 && p.in[i-1] == 'n' && p.in[i-2] == '\\') {
		return 0, 0
	}
	if at+n < len(p.in) && p.in[at+n] != ':' {
		return 0, 0
	}
	v, ok := p.assigned(at, n)
	if !ok || !(bootstrapToken().Match(v.body) && changes(v.body) > 0) && !v.mixed(20) {
		return 0, 0
	}
	return v.begin, v.end
}
