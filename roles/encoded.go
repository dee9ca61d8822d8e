package roles

import (
	"bytes"
	"encoding/base64"
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
	encodedTokens = []string{"Z2hwX", "Z2hvX", "Z2hzX", "Z2l0aHViX3BhdF", "Z2xwYXQt", "c2stYW50LW", "c2stcHJvai", "eG94Yi", "bnBtX"}
)

// encodedLabel is how many characters of Base64 hold the first line of a key in PEM form.
const encodedLabel = 64

// encodedKey is the Base64 of a private key in PEM form, or of a file that holds one, in one
// line or in several.
func encodedKey(in []byte, at, n int, ended bool) finding {
	within := in[:min(len(in), at+pemMax)]
	ended = ended || len(in) > len(within)
	to, size := at, 0
	for i := at; ; {
		run, ok := runOf(within[i:], base64Any, len(within), ended)
		if !ok {
			return finding{verdict: undecided}
		}
		if size += run; run > 0 {
			to = i + run
		}
		if run < pemLine || within[to-1] == '=' {
			break
		}
		next := skipGap(within, to)
		if !ended && len(within)-next < markMax {
			return finding{verdict: undecided}
		}
		if !bytes.ContainsAny(within[to:next], "\n\r\\") {
			break // words that follow on the line
		}
		i = next
	}
	if size < encodedLabel {
		return finding{}
	}
	return finding{verdict: isKey, to: to - at}
}

// encodedPrivate is encodedKey where what is encoded is a private key, which its first line says.
func encodedPrivate(in []byte, at, n int, ended bool) finding {
	f := encodedKey(in, at, n, ended)
	if f.verdict != isKey {
		return f
	}
	key := in[at : at+f.to]
	switch key[0] {
	case '0':
		key = key[2:]
	case 't':
		key = key[1:]
	case 'T':
		key = firstDecoded(key, 2*encodedLabel)
	}
	if !bytes.Contains(firstDecoded(key, encodedLabel), []byte("PRIVATE KEY")) {
		return finding{}
	}
	return f
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
func encodedToken(in []byte, at, n int, ended bool) finding {
	run, ok := runOf(in[at:], base64Any, valueMax, ended)
	if !ok {
		return finding{verdict: undecided}
	}
	body := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(string(in[at:at+run]), "="))
	plain, err := base64.RawStdEncoding.DecodeString(body)
	if err != nil || findAt(plain, 0, true, true).verdict != isKey {
		return finding{}
	}
	return finding{verdict: isKey, to: run}
}

// dockerAuth is user:password in Base64, as in "auth": "…" of Docker and _auth=… of npm.
func dockerAuth(in []byte, at, n int, ended bool) finding {
	if at == 0 || in[at-1] != '"' && in[at-1] != '_' && in[at-1] != '\'' {
		return finding{}
	}
	gap, ok := runOf(in[at+n:], between, assignMax, ended)
	if !ok {
		return finding{verdict: undecided}
	}
	if !strings.ContainsAny(string(in[at+n:at+n+gap]), ":=") {
		return finding{}
	}
	begin := at + n + gap
	run, ok := runOf(in[begin:], base64Set, open, ended)
	if !ok {
		return finding{verdict: undecided}
	}
	body := strings.TrimRight(string(in[begin:begin+run]), "=")
	plain, err := base64.RawStdEncoding.DecodeString(body)
	if err != nil || len(plain) < 5 || bytes.IndexByte(plain, ':') < 0 {
		return finding{}
	}
	for _, c := range plain {
		if c < ' ' {
			return finding{}
		}
	}
	return finding{verdict: isKey, from: begin - at, to: begin + run - at}
}
