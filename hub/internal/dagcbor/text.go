package dagcbor

import (
	"encoding/base32"
	"encoding/binary"
	"unicode/utf8"

	"wf/protocol"
)

const hex = "0123456789abcdef"

// AppendString appends text as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendString(dst, s []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if n := plain(s[i:]); n > 0 {
			i += n
			continue
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			if r, size := utf8.DecodeRune(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, "\ufffd"...)
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// plain is how many bytes at the start of s are ASCII that JSON takes as it is. It looks at
// eight bytes at once: a byte is not plain when its high bit shows in one of these sums.
func plain(s []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(s)-n >= 8; n += 8 {
		v := binary.LittleEndian.Uint64(s[n:])
		quote, slash := v^(ones*'"'), v^(ones*'\\')
		if (v|(v-ones*0x20)|(quote-ones)|(slash-ones))&highs != 0 {
			break
		}
	}
	for ; n < len(s); n++ {
		if c := s[n]; c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			break
		}
	}
	return n
}

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// AppendCID appends the text form of a CID, without the detours of the library for version 1.
func AppendCID(dst []byte, l protocol.Link) []byte {
	b := l.CID().KeyString()
	if len(b) != 36 || b[0] != 1 {
		return append(dst, l.String()...)
	}
	return base32Lower.AppendEncode(append(dst, 'b'), []byte(b))
}
