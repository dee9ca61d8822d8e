package task

import (
	"cmp"
	"encoding/json"
	"fmt"

	"wf/protocol"
)

// nested is the key of a task in the data of a role that declares fields of its own.
const nested = "task"

// Data is what the record of a task holds: d, or the declared fields with d below the key
// "task". declared is a canonical object, or nil.
func Data(d protocol.TaskData, declared protocol.JSON) (protocol.JSON, error) {
	if len(declared) == 0 {
		return protocol.CanonicalJSON(d)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(declared, &fields); err != nil {
		return nil, fmt.Errorf("declared fields of a task: %w", err)
	}
	own, err := protocol.CanonicalJSON(d)
	if err != nil {
		return nil, err
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	fields[nested] = json.RawMessage(own)
	return protocol.CanonicalJSON(fields)
}

// Read finds a task in the data of a record; ok is false for that of any other visit.
func Read(data protocol.JSON) (d protocol.TaskData, ok bool) {
	if len(data) == 0 {
		return d, false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return d, false
	}
	if own, there := fields[nested]; there && json.Unmarshal(own, &d) == nil && d.Goal != "" {
		return d, true
	}
	d = protocol.TaskData{}
	if json.Unmarshal(data, &d) != nil || d.Goal == "" || d.Status == "" {
		return protocol.TaskData{}, false
	}
	return d, true
}

// Block is goal and state as they stand at the end of what an agent reads.
func Block(goal, state string) string {
	state = cmp.Or(state, "(nothing saved yet)")
	return "<task>\nGoal: " + goal + "\nState: " + state + "\n</task>"
}
