package roles

import (
	"bytes"
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

// A value is what stands behind a name. tight says that no space stands between them, quoted
// that it is a string.
type value struct {
	begin, end    int
	tight, quoted bool
}

// assigned is the value of the name that stands at in[at:at+n]; isNone of the verdict is that
// there is none, or that it is a placeholder or the beginning of an expression.
func assigned(in []byte, at, n int, ended bool) (value, verdict) {
	gap, ok := runOf(in[at+n:], between, assignMax, ended)
	if !ok {
		return value{}, undecided
	}
	signs := string(in[at+n : at+n+gap])
	if !strings.ContainsAny(signs, ":=") || strings.Contains(signs, "==") {
		return value{}, isNone
	}
	v := value{begin: at + n + gap, tight: !strings.ContainsAny(signs, " \t")}
	of := unquotedSet
	if v.quoted = strings.HasSuffix(signs, `"`) || strings.HasSuffix(signs, "'"); v.quoted {
		of = quotedSet
	}
	run, ok := runOf(in[v.begin:], of, valueMax, ended)
	if !ok {
		return value{}, undecided
	}
	v.end = v.begin + run
	switch {
	case run == 0, v.end == len(in):
	case v.quoted && strings.IndexByte("\"'\\", in[v.end]) < 0, !v.quoted && !endsValue[in[v.end]]:
		return value{}, isNone // a text of several words, or a call
	}
	for !v.quoted && v.end > v.begin && in[v.end-1] == '.' {
		v.end-- // the end of a sentence
	}
	body := in[v.begin:v.end]
	if isPlaceholder(body, nil) || strings.IndexByte("<{/~.-", body[0]) >= 0 || bytes.Contains(body, []byte("${")) || bytes.Contains(body, []byte("://")) {
		return value{}, isNone
	}
	switch known := ofItsOwn(in, v.begin, ended); known {
	case undecided:
		return value{}, undecided
	case isKey:
		return value{}, isNone // found where it begins, under its own kind
	}
	return v, isKey
}

// ofItsOwn judges whether what begins at a place is a key by its own form, whatever its name.
func ofItsOwn(in []byte, at int, ended bool) verdict {
	if at+1 >= len(in) {
		return isNone
	}
	rest := in[at:]
	for _, s := range byPrefix().at(in, at) {
		if s.name || s.find != nil {
			continue
		}
		if len(rest) < len(s.prefix) || string(rest[:len(s.prefix)]) != s.prefix {
			continue
		}
		if f := s.run(rest, ended); f.verdict != isNone {
			return f.verdict
		}
	}
	return isNone
}

func (v value) hidden(at int) finding {
	return finding{verdict: isKey, from: v.begin - at, to: v.end - at}
}

// assignedSecret is a long value of letters and digits well mixed.
func assignedSecret(in []byte, at, n int, ended bool) finding {
	v, known := assigned(in, at, n, ended)
	if known != isKey {
		return finding{verdict: known}
	}
	if body := in[v.begin:v.end]; len(body) < 16 || changes(body) < 4 || !v.quoted && expression().Match(body) {
		return finding{}
	}
	return v.hidden(at)
}

// tokenMin is the length of a value from which assignedToken takes it for a token.
const tokenMin = 12

// assignedToken is the value of a name that only tokens have.
func assignedToken(in []byte, at, n int, ended bool) finding {
	v, known := assigned(in, at, n, ended)
	if known != isKey {
		return finding{verdict: known}
	}
	if v.end-v.begin < tokenMin || !v.quoted && expression().Match(in[v.begin:v.end]) {
		return finding{}
	}
	return v.hidden(at)
}

// bootstrapToken is the form of a token by which a node joins a cluster.
var bootstrapToken = lazy.Regexp(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// assignedPassword is the value of a variable of the environment, or one that is no word.
func assignedPassword(in []byte, at, n int, ended bool) finding {
	v, known := assigned(in, at, n, ended)
	if known != isKey {
		return finding{verdict: known}
	}
	body := in[v.begin:v.end]
	variable := v.tight && in[at+n] == '=' && in[at+1] >= 'A' && in[at+1] <= 'Z'
	mixes := changes(body)
	switch {
	case variable && len(body) >= 6:
	case len(body) < 8, mixes < 2, mixes == 2 && !manyClasses(body), !v.quoted && expression().Match(body):
		return finding{}
	}
	return v.hidden(at)
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
func kubernetesToken(in []byte, at, n int, ended bool) finding {
	i := at
	for i > max(0, at-contextMax) && (in[i-1] == ' ' || in[i-1] == '\t') {
		i--
	}
	if i > 0 && in[i-1] != '\n' && !(i > 1 && in[i-1] == 'n' && in[i-2] == '\\') {
		return finding{}
	}
	if at+n < len(in) && in[at+n] != ':' {
		return finding{}
	}
	v, known := assigned(in, at, n, ended)
	if known != isKey {
		return finding{verdict: known}
	}
	body := in[v.begin:v.end]
	if bootstrapToken().Match(body) && changes(body) > 0 {
		return v.hidden(at)
	}
	if len(body) < 20 || changes(body) < 4 || !v.quoted && expression().Match(body) {
		return finding{}
	}
	return v.hidden(at)
}
