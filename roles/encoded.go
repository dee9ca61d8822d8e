package roles

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// Keys in Base64.

// encodedBegin is how the Base64 of -----BEGIN and that of the account of a service begin, the
// latter with and without spaces.
var encodedBegin = []string{"LS0tLS1CRUdJTi", "ewogICJ0eXBlIjogInNlcnZpY2VfYWNjb3VudCI", "eyJ0eXBlIjoic2VydmljZV9hY2NvdW50Ii"}

// encodedLabel is how many characters of Base64 hold the first line of a key in PEM form.
const encodedLabel = 64

// encodedKey is the Base64 of a private key in PEM form, or of a file that holds one, in one
// line or in several.
func encodedKey(in []byte, at, n int, ended bool) finding {
	within := in[:min(len(in), at+pemMax)]
	ended = ended || len(in) > len(within)
	to, size := at, 0
	for i := at; ; {
		run, ok := runOf(within[i:], base64Set, len(within), ended)
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
		if next == to {
			break
		}
		i = next
	}
	if size < encodedLabel {
		return finding{}
	}
	if in[at] == 'L' && !bytes.Contains(firstDecoded(in[at:to]), []byte("PRIVATE KEY")) {
		return finding{}
	}
	return finding{verdict: isKey, to: to - at}
}

// firstDecoded decodes the beginning of a run of Base64.
func firstDecoded(b []byte) []byte {
	n := min(len(b), encodedLabel)
	out, err := base64.StdEncoding.DecodeString(string(b[:n/4*4]))
	if err != nil {
		return nil
	}
	return out
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
