package postgres

import "encoding/binary"

// The types of parameters, by their numbers in every PostgreSQL.
const (
	OIDBytea  = 17
	OIDInt8   = 20
	OIDInt4   = 23
	OIDText   = 25
	OIDByteas = 1001 // bytea[]
	OIDInts   = 1007 // int4[]
	OIDTexts  = 1009 // text[]
	OIDLongs  = 1016 // int8[]
)

// binaryForm is the format of all parameters and results.
const binaryForm = 1

// Param is a parameter of a statement: its type and its binary form; nil is NULL.
type Param struct {
	OID   uint32
	Value []byte
}

// Text is a parameter of the type text.
func Text(s string) Param { return Param{OIDText, []byte(s)} }

// Bytea is one of the type bytea.
func Bytea(b []byte) Param { return Param{OIDBytea, b} }

// Long is one of the type bigint.
func Long(n int64) Param { return Param{OIDInt8, binary.BigEndian.AppendUint64(nil, uint64(n))} }

// Integer is one of the type integer.
func Integer(n int32) Param { return Param{OIDInt4, binary.BigEndian.AppendUint32(nil, uint32(n))} }

// ReadInt is the integer in a value of 4 bytes; 0 where it has another length.
func ReadInt(b []byte) int32 {
	if len(b) != 4 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

// ReadLong reads a bigint; NULL is 0.
func ReadLong(b []byte) int64 {
	if len(b) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// Array is the binary form of an array with one dimension; an element that is nil is NULL.
func Array(oid, of uint32, n int, at func(i int) []byte) Param {
	if n == 0 {
		return Param{oid, binary.BigEndian.AppendUint32(make([]byte, 8, 12), of)}
	}
	var out []byte
	for _, x := range []uint32{1, 1, of, uint32(n), 1} { // dimensions, NULLs may be in it, type, length, first index
		out = binary.BigEndian.AppendUint32(out, x)
	}
	for i := range n {
		v := at(i)
		if v == nil {
			out = binary.BigEndian.AppendUint32(out, 1<<32-1)
			continue
		}
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(v))), v...)
	}
	return Param{oid, out}
}

// Texts is a parameter of the type text[].
func Texts(all []string) Param {
	return Array(OIDTexts, OIDText, len(all), func(i int) []byte { return append([]byte{}, all[i]...) })
}

// Byteas is one of the type bytea[].
func Byteas(all [][]byte) Param {
	return Array(OIDByteas, OIDBytea, len(all), func(i int) []byte { return all[i] })
}

// Ints is one of the type integer[].
func Ints(n int, at func(int) int32) Param {
	return Array(OIDInts, OIDInt4, n, func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(at(i))) })
}

// Longs is one of the type bigint[], with NULL where at says so.
func Longs(n int, at func(int) (v int64, null bool)) Param {
	return Array(OIDLongs, OIDInt8, n, func(i int) []byte {
		v, null := at(i)
		if null {
			return nil
		}
		return binary.BigEndian.AppendUint64(nil, uint64(v))
	})
}
