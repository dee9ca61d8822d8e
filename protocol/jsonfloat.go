package protocol

import (
	"bytes"
	"encoding/json"
)

// AppendJSONFloat appends a float as DAG-JSON has it: as ECMAScript writes it, and with .0 where it
// would read as an integer. What is no number is null; no stored block holds one.
func AppendJSONFloat(dst []byte, f float64) []byte {
	b, err := json.Marshal(f)
	if err != nil {
		return append(dst, "null"...)
	}
	if !bytes.ContainsAny(b, ".e") {
		b = append(b, ".0"...)
	}
	return append(dst, b...)
}
