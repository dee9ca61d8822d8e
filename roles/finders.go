package roles

import (
	"bytes"
	"strings"
)

// telegramToken is 123456789:AA…; the number, which is no secret, is kept.
func telegramToken(p *passage, at, n int) (from, to int) {
	numbers := 0
	for i := at - 1; i >= 0 && p.in[i] >= '0' && p.in[i] <= '9'; i-- {
		numbers++
	}
	if numbers < 8 || numbers > 10 {
		return 0, 0
	}
	if to = p.run(at+n, word, 34); to != at+n+33 {
		return 0, 0
	}
	return at + 1, to
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
func urlPassword(p *passage, at, n int) (from, to int) {
	colon := p.run(at+n, userSet, userMax)
	if !p.has(colon, ":") {
		return 0, 0
	}
	sign := p.run(colon+1, passwordSet, passwordMax)
	if !p.has(sign, "@") || isPlaceholder(p.in[colon+1:sign], p.in[at+n:colon]) {
		return 0, 0
	}
	if p.lacks(sign, 2) || sign+1 == len(p.in) || !under[p.in[sign+1]] && p.in[sign+1] != '[' {
		return 0, 0 // no host
	}
	return colon + 1, sign
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
func basicAuth(p *passage, at, n int) (from, to int) {
	const scheme = "Basic "
	from = p.run(at+n, between, separatorsMax)
	if from == at+n || !p.begins(from, scheme) {
		return 0, 0
	}
	from += len(scheme)
	if to = p.run(from, base64Set, open); to < from+8 || same(p.in[from:to]) {
		return 0, 0
	}
	return from, to
}

var bearerSet = setOf(lowerCase + upperCase + digits + "-._~+/=")

// bearerToken is the token of Bearer …: long, and with letters and digits well mixed.
func bearerToken(p *passage, at, n int) (from, to int) {
	from = at + n
	token := bytes.TrimRight(p.in[from:p.run(from, bearerSet, open)], ".")
	if len(token) < 20 || changes(token) < 4 {
		return 0, 0
	}
	return from, from + len(token)
}

var azureSet = setOf(lowerCase + upperCase + digits + "_~.-")

// azureSecret is a secret of an application of Microsoft Entra: three characters and a digit,
// which are shown, and then Q~.
func azureSecret(p *passage, at, n int) (from, to int) {
	in := p.in
	if at < 4 || in[at-1] < '0' || in[at-1] > '9' || !azureSet[in[at-2]] || !azureSet[in[at-3]] || !azureSet[in[at-4]] {
		return 0, 0
	}
	if at > 4 && azureSet[in[at-5]] && !boundary(in, at-4) {
		return 0, 0
	}
	body := bytes.TrimRight(in[at+n:p.run(at+n, azureSet, 36)], ".")
	if len(body) < 31 || len(body) > 34 {
		return 0, 0
	}
	return at, at + n + len(body)
}

// curlPassword is the password in curl -u user:password.
func curlPassword(p *passage, at, n int) (from, to int) {
	line := p.in[max(0, at-contextMax):at]
	for i := bytes.LastIndexByte(line, '\n'); i >= 0; i = bytes.LastIndexByte(line[:i], '\n') {
		if i == 0 || line[i-1] != '\\' {
			line = line[i:]
			break
		}
	}
	if !bytes.Contains(line, []byte("curl ")) {
		return 0, 0
	}
	begin := p.run(at+n, between, separatorsMax)
	colon := p.run(begin, userSet, userMax)
	if begin == at+n && n > len("-u") || !p.has(colon, ":") {
		return 0, 0
	}
	from = colon + 1
	password := bytes.TrimRight(p.in[from:p.run(from, unquotedSet, passwordMax)], ".") // the end of a sentence
	if isPlaceholder(password, p.in[begin:colon]) {
		return 0, 0
	}
	return from, from + len(password)
}

// oldVault is a token of Vault before 1.10: s. and 24 letters and digits, which a field of a program's s is not.
func oldVault(p *passage, at, n int) (from, to int) {
	to = p.run(at+n, alnum, 25)
	if body := p.in[at+n : to]; len(body) != 24 || to < len(p.in) && under[p.in[to]] || changes(body) < 4 || !manyClasses(body) {
		return 0, 0
	}
	return at, to
}
