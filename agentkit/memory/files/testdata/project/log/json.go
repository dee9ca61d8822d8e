// Package log writes what happens, one JSON object on each line.
package log

import (
	"encoding/json"
	"io"
)

// Line writes a message with its fields as a line of JSON.
func Line(w io.Writer, message string, fields map[string]any) error {
	fields["message"] = message
	return json.NewEncoder(w).Encode(fields)
}
