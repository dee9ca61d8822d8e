package model

import (
	"encoding/json"
	"strings"
)

// Arguments are those of a call as a JSON object: what the model wrote, {} where it wrote nothing or null, and what is within a
// second encoding. ok is false where they are no object.
func Arguments(written string) (object string, ok bool) {
	for range 3 {
		text := strings.TrimSpace(written)
		switch {
		case text == "" || text == "null":
			return "{}", true
		case !json.Valid([]byte(text)):
			return "", false
		case text[0] == '{':
			return text, true
		case text[0] != '"' || json.Unmarshal([]byte(text), &written) != nil:
			return "", false
		}
	}
	return "", false
}
