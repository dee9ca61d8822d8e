package roles

import (
	"bytes"
	"strings"
)

// telegramToken is 123456789:AA…; the number, which is no secret, is kept.
func telegramToken(in []byte, at, n int, ended bool) finding {
	numbers := 0
	for i := at - 1; i >= 0 && in[i] >= '0' && in[i] <= '9'; i-- {
		numbers++
	}
	if numbers < 8 || numbers > 10 {
		return finding{}
	}
	run, ok := runOf(in[at+n:], word, 34, ended)
	switch {
	case !ok:
		return finding{verdict: undecided}
	case run != 33:
		return finding{}
	}
	return finding{verdict: isKey, from: 1, to: n + run}
}

// userMax and passwordMax bound what stands before an @ in an address.
const (
	userMax     = 128
	passwordMax = 256
)

var (
	userSet     = without(" \t\r\n/@:?#\"'<>`\\[]{}()|^$")
	passwordSet = without(" \t\r\n/@?#\"'<>`\\{}|^")
)

// without has all visible characters but some.
func without(chars string) *set {
	s := new(set)
	for c := '!'; c < 0x7f; c++ {
		s[c] = strings.IndexByte(chars, byte(c)) < 0
	}
	return s
}

// urlPassword is the password in ://user:password@host. One that a program fills in, or that
// everybody knows, is none.
func urlPassword(in []byte, at, n int, ended bool) finding {
	user, ok := runOf(in[at+n:], userSet, userMax, ended)
	if !ok {
		return finding{verdict: undecided}
	}
	colon := at + n + user
	if colon == len(in) || in[colon] != ':' {
		return finding{}
	}
	length, ok := runOf(in[colon+1:], passwordSet, passwordMax, ended)
	if !ok {
		return finding{verdict: undecided}
	}
	sign := colon + 1 + length
	if sign == len(in) || in[sign] != '@' || isPlaceholder(in[colon+1:sign], in[at+n:colon]) {
		return finding{}
	}
	if sign+1 == len(in) && !ended {
		return finding{verdict: undecided}
	}
	if sign+1 == len(in) || !under[in[sign+1]] && in[sign+1] != '[' {
		return finding{} // no host
	}
	return finding{verdict: isKey, from: colon + 1 - at, to: sign - at}
}

// known are passwords that stand in examples.
var known = map[string]bool{
	"pass": true, "passwd": true, "password": true, "secret": true, "changeme": true, "example": true, "test": true, "testing": true,
	"user": true, "username": true, "admin": true, "root": true, "guest": true, "postgres": true, "mysql": true, "redis": true,
	"token": true, "pwd": true, "foo": true, "bar": true, "demo": true, "dev": true, "hunter2": true, "yourpassword": true, "mypassword": true,
}

func isPlaceholder(password, user []byte) bool {
	if len(password) < 3 || same(password) || bytes.Equal(password, user) || strings.IndexByte("$%[*(", password[0]) >= 0 {
		return true
	}
	return known[strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(string(password)))]
}

// basicAuth is the value in Authorization: Basic …
func basicAuth(in []byte, at, n int, ended bool) finding {
	gap, ok := runOf(in[at+n:], between, separatorsMax, ended)
	if !ok {
		return finding{verdict: undecided}
	}
	begin := at + n + gap
	const scheme = "Basic "
	if rest := string(in[begin:min(len(in), begin+len(scheme))]); rest != scheme {
		if !ended && len(rest) < len(scheme) && strings.HasPrefix(scheme, rest) {
			return finding{verdict: undecided}
		}
		return finding{}
	}
	begin += len(scheme)
	run, ok := runOf(in[begin:], base64Set, open, ended)
	switch {
	case !ok:
		return finding{verdict: undecided}
	case gap == 0, run < 8, same(in[begin : begin+run]):
		return finding{}
	}
	return finding{verdict: isKey, from: begin - at, to: begin + run - at}
}

var bearerSet = setOf(lowerCase + upperCase + digits + "-._~+/=")

// bearerToken is the token of Bearer …: long, and with letters and digits well mixed.
func bearerToken(in []byte, at, n int, ended bool) finding {
	run, ok := runOf(in[at+n:], bearerSet, open, ended)
	if !ok {
		return finding{verdict: undecided}
	}
	token := bytes.TrimRight(in[at+n:at+n+run], ".")
	if len(token) < 20 || changes(token) < 4 {
		return finding{}
	}
	return finding{verdict: isKey, from: n, to: n + len(token)}
}

var azureSet = setOf(lowerCase + upperCase + digits + "_~.-")

// azureSecret is a secret of an application of Microsoft Entra: three characters and a digit,
// which are shown, and then Q~.
func azureSecret(in []byte, at, n int, ended bool) finding {
	if at < 4 || in[at-1] < '0' || in[at-1] > '9' || !azureSet[in[at-2]] || !azureSet[in[at-3]] || !azureSet[in[at-4]] {
		return finding{}
	}
	if at > 4 && azureSet[in[at-5]] && !boundary(in, at-4) {
		return finding{}
	}
	run, ok := runOf(in[at+n:], azureSet, 36, ended)
	if !ok {
		return finding{verdict: undecided}
	}
	body := bytes.TrimRight(in[at+n:at+n+run], ".")
	if len(body) < 31 || len(body) > 34 {
		return finding{}
	}
	return finding{verdict: isKey, to: n + len(body)}
}

// curlPassword is the password in curl -u user:password.
func curlPassword(in []byte, at, n int, ended bool) finding {
	line := in[max(0, at-contextMax):at]
	for i := bytes.LastIndexByte(line, '\n'); i >= 0; i = bytes.LastIndexByte(line[:i], '\n') {
		if i == 0 || line[i-1] != '\\' {
			line = line[i:]
			break
		}
	}
	if !bytes.Contains(line, []byte("curl ")) {
		return finding{}
	}
	gap, ok := runOf(in[at+n:], between, separatorsMax, ended)
	if !ok {
		return finding{verdict: undecided}
	}
	begin := at + n + gap
	user, ok := runOf(in[begin:], userSet, userMax, ended)
	if !ok {
		return finding{verdict: undecided}
	}
	colon := begin + user
	if gap == 0 && n > len("-u") || colon == len(in) || in[colon] != ':' {
		return finding{}
	}
	length, ok := runOf(in[colon+1:], unquotedSet, passwordMax, ended)
	if !ok {
		return finding{verdict: undecided}
	}
	password := bytes.TrimRight(in[colon+1:colon+1+length], ".") // the end of a sentence
	if isPlaceholder(password, in[begin:colon]) {
		return finding{}
	}
	return finding{verdict: isKey, from: colon + 1 - at, to: colon + 1 + len(password) - at}
}
