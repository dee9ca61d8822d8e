package roles

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ShortSecret is the length in bytes from which a secret is looked for in Base64, hexadecimal
// and addresses too. What is shorter is too easily something else.
const ShortSecret = 8

// lineMin is the length in bytes from which a single line of a secret of several lines, such
// as a private key, is hidden on its own.
const lineMin = 8

// texts are what a secret is looked for as: its value, what a shell's echo makes of it, the lines of both, and the
// hexadecimal digits and the Base64 of it and of any text around it. None is empty.
func texts(value string) []string {
	value = strings.TrimRight(value, "\r\n")
	all := []string{value}
	if valid := strings.ToValidUTF8(value, "\uFFFD"); valid != value {
		all = append(all, valid)
	}
	if len(value) >= ShortSecret && strings.Contains(value, `\`) {
		all = append(all, echoed(value, false)...)
		all = append(all, echoed(value, true)...)
	}
	for i, text := range all {
		plain, _ := normalise(nil, []byte(text), true)
		all[i] = string(plain)
		lines := strings.Split(all[i], "\n")
		for _, line := range lines {
			if line = strings.TrimSpace(line); len(lines) > 1 && len(line) >= lineMin {
				all = append(all, line)
			}
		}
	}
	if len(value) >= ShortSecret {
		in16 := hex.EncodeToString([]byte(value))
		all = append(all, in16, strings.ToUpper(in16))
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				all = append(all, inBase64(alphabet, value, before))
			}
		}
	}
	for i, text := range all {
		all[i] = seenOf(text)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
}

// seenOf is what is seen of a value, if that is enough to know it by.
func seenOf(text string) string {
	var s sight
	s.look(&passage{in: []byte(text), ended: true}, 0)
	if len(s.in) < ShortSecret {
		return text
	}
	return string(s.in)
}

// echoed is what the echo of a shell makes of a value, of dash or, where wide is true, of others; and what it shows up
// to \c, where it ends. Escapes that it does not know stay.
func echoed(value string, wide bool) []string {
	p := passage{in: []byte(value), ended: true}
	var b []byte
	for at := 0; at < len(value); {
		if value[at] != '\\' || at+1 == len(value) {
			b = append(b, value[at])
			at++
			continue
		}
		c := value[at+1]
		n := 1
		for n < 5 && at+n < len(value) && (n < 4 || c == '0') && value[at+n] >= '0' && value[at+n] <= '7' {
			n++
		}
		switch r, size, bare := p.escape(at); {
		case c == '\\':
			b, at = append(b, '\\'), at+2
		case c == 'c':
			if len(b) < ShortSecret {
				return nil
			}
			return []string{string(b)}
		case n > 1:
			octal, _ := strconv.ParseUint(value[at+1:at+n], 8, 16)
			b, at = append(b, byte(octal)), at+n
		case size > 0 && (wide || strings.IndexByte("uUxE", c) < 0):
			if bare {
				b = append(b, byte(r))
			} else {
				b = utf8.AppendRune(b, r)
			}
			at += size
		default:
			b, at = append(b, '\\'), at+1
		}
	}
	if len(b) < ShortSecret {
		return nil
	}
	return []string{string(b)}
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
