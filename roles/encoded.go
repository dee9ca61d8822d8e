package roles

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
)

// Keys in Base64.

var (
	// encodedBegin is how the Base64 of the account of a service begins, with and without spaces.
	encodedBegin = []string{"ewogICJ0eXBlIjogInNlcnZpY2VfYWNjb3VudCI", "eyJ0eXBlIjogInNlcnZpY2VfYWNjb3VudCI", "eyJ0eXBlIjoic2VydmljZV9hY2NvdW50Ii"}

	// encodedPEM is what the Base64 of a text that holds -----BEGIN has of it, for each of the three ways
	// in which it may lie; and of the first one, encoded twice.
	encodedPEM = []string{"LS0tLS1CRUdJTi", "0tLS0tQkVHSU4g", "tLS0tLUJFR0lOI", "TFMwdExTMUNSVWRKVG"}

	// encodedDocker is how the Base64 of a config of Docker begins, as Kubernetes keeps it, by its spaces.
	encodedDocker = []string{"eyJhdXRocyI6", "eyAiYXV0aHMiOi", "ewoJImF1dGhzIjog", "ewogICJhdXRocyI6", "ewogICAgImF1dGhzIjog"}

	// encodedTokens is how the Base64 of some widely used tokens begins.
	encodedTokens = []string{"Z2hwX", "Z2hvX", "Z2hzX", "Z2l0aHViX3BhdF", "Z2xwYXQt", "c2stYW50LW", "c2stcHJvai", "eG94Yi", "bnBtX", "ZXlK"}
)

// encodedLabel is how many characters of Base64 hold the first line of a key in PEM form.
const encodedLabel = 64

// encodedKey is the Base64 of a private key in PEM form, or of a file that holds one, in one
// line or in several.
func encodedKey(p *passage, at, n int) (from, to int) {
	p, known := p.upTo(at + pemMax)
	defer known()
	size := 0
	for i := at; ; {
		end := p.run(i, base64Any, pemMax)
		run := end - i
		if size += run; run > 0 {
			to = end
		}
		if run < pemLine || p.in[to-1] == '=' {
			break
		}
		if i = skipGap(p.in, to); p.lacks(i, markMax) || !bytes.ContainsAny(p.in[to:i], "\n\r\\") {
			break // words that follow on the line
		}
	}
	if size < encodedLabel {
		return 0, 0
	}
	return at, to
}

// encodedPrivate is encodedKey where what is encoded is a private key, which its first line says.
func encodedPrivate(p *passage, at, n int) (from, to int) {
	if _, to = encodedKey(p, at, n); to == 0 {
		return 0, 0
	}
	key := p.in[at:to]
	switch key[0] {
	case '0':
		key = key[2:]
	case 't':
		key = key[1:]
	case 'T':
		key = firstDecoded(key, 2*encodedLabel)
	}
	if !bytes.Contains(firstDecoded(key, encodedLabel), []byte("PRIVATE KEY")) {
		return 0, 0
	}
	return at, to
}

// firstDecoded decodes at most so many characters of a run of Base64.
func firstDecoded(b []byte, most int) []byte {
	n := min(len(b), most)
	out, err := base64.StdEncoding.DecodeString(string(b[:n/4*4]))
	if err != nil {
		return nil
	}
	return out
}

// encodedToken is the Base64 of a token alone, or of one with a line end.
func encodedToken(p *passage, at, n int) (from, to int) {
	to = p.run(at, base64Any, open)
	body := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(string(p.in[at:to]), "="))
	plain, err := base64.RawStdEncoding.DecodeString(body)
	if err != nil || (&passage{in: plain, ended: true}).find(0, true).verdict != isKey {
		return 0, 0
	}
	return at, to
}

// dockerAuth is user:password in Base64, as in "auth": "…" of Docker and _auth=… of npm.
func dockerAuth(p *passage, at, n int) (from, to int) {
	if at == 0 || !p.has(at-1, "\"_'") {
		return 0, 0
	}
	from = p.run(at+n, between, assignMax)
	if !bytes.ContainsAny(p.in[at+n:from], ":=") {
		return 0, 0
	}
	to = p.run(from, base64Set, open)
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(string(p.in[from:to]), "="))
	if err != nil || len(plain) < 5 || bytes.IndexByte(plain, ':') < 0 || slices.Min(plain) < ' ' {
		return 0, 0
	}
	return from, to
}
