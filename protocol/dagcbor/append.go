package dagcbor

import "encoding/binary"

// AppendHead appends the head of an item in its shortest form.
func AppendHead(dst []byte, major byte, n uint64) []byte {
	switch major <<= 5; {
	case n < 24:
		return append(dst, major|byte(n))
	case n < 1<<8:
		return append(dst, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, major|27), n)
}

// AppendInt appends an integer.
func AppendInt(dst []byte, n int64) []byte {
	if n < 0 {
		return AppendHead(dst, Negative, uint64(-1-n))
	}
	return AppendHead(dst, Uint, uint64(n))
}

// AppendText appends a text, which must be UTF-8.
func AppendText(dst []byte, s string) []byte {
	return append(AppendHead(dst, Text, uint64(len(s))), s...)
}

// AppendBytes appends a byte string.
func AppendBytes(dst, b []byte) []byte { return append(AppendHead(dst, Bytes, uint64(len(b))), b...) }

// AppendNull appends null.
func AppendNull(dst []byte) []byte { return AppendHead(dst, Simple, Null) }

// AppendLink appends a link, tag 42 around the bytes of a CID.
func AppendLink[T string | []byte](dst []byte, cid T) []byte {
	dst = AppendHead(AppendHead(dst, Tag, 42), Bytes, uint64(len(cid)+1))
	return append(append(dst, 0), cid...)
}
