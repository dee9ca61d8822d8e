package wire

import (
	"encoding/json"
	"strings"

	"wf/agentkit/model"
)

// Arguments are those of an earlier call as servers take them, an object: what the model wrote where it is one. Else
// that is kept in it as text.
func Arguments(written string) json.RawMessage {
	if object, ok := model.Arguments(written); ok {
		return json.RawMessage(object)
	}
	b, err := Encode(map[string]string{"invalid_json": written})
	if err != nil {
		return json.RawMessage("{}") // a string always has a JSON form
	}
	return b
}

// most is how many letters a name may have.
const most = 64

// Name is that of an earlier call as servers take it, ^[a-zA-Z0-9_-]{1,64}$: models call tools that are not there, by
// names such as functions.Read, or by none.
func Name(called string) string {
	if called == "" {
		return "unnamed"
	}
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, called)
	return name[:min(len(name), most)]
}
