package wire

import (
	"encoding/json"

	"wf/agentkit/model"
)

// Arguments are those of an earlier call as servers take them, an object: what the model wrote where it is one. Else that is
// kept in it as text.
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
