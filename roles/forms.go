package roles

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// ShortSecret is the length in bytes from which a secret is looked for in Base64, hexadecimal
// and addresses too. What is shorter is too easily something else.
const ShortSecret = 8

// forms are the ways in which a value may be written: as it is or with other line ends, in JSON, in an address, in
// hexadecimal, and in Base64 of it and of any text around it.
func forms(value string) []string {
	plain, _ := normalise(nil, []byte(value), true)
	lf := string(plain)
	crlf := strings.ReplaceAll(lf, "\n", "\r\n")
	all := []string{value, inJSON(value), lf, inJSON(lf), crlf, inJSON(crlf), strings.ToValidUTF8(value, "\uFFFD")}
	if len(value) >= ShortSecret {
		in16 := fmt.Sprintf("%x", value)
		all = append(all, url.QueryEscape(value), url.PathEscape(value), in16, strings.ToUpper(in16))
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				all = append(all, inBase64(alphabet, value, before))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// inBase64 is what the Base64 of a text has in common with that of every other one that holds the
// value behind 3n+before bytes: its characters but those that tell of its neighbours too.
func inBase64(alphabet *base64.Encoding, value string, before int) string {
	encoded := alphabet.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
	encoded = encoded[(before*8+5)/6:]
	if (before+len(value))%3 != 0 {
		encoded = encoded[:len(encoded)-1]
	}
	return encoded
}

// inJSON is how a value is written within a string of JSON, as in the arguments of a tool.
func inJSON(value string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return value
	}
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n")
}
