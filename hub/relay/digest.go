package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wf/hub/queue"
	"wf/protocol"
)

// digests makes the digests of a request, field by field and input by input. They are made with the key of the hub and the id
// of the job, so that equal values of two jobs do not show, nor the names of inputs.
func (h *Hub) digests(x *submission, fields map[string]json.RawMessage) {
	x.digest, x.inputs = map[string]string{}, map[string]string{}
	mac := func(parts ...string) string {
		m := hmac.New(sha256.New, h.DigestKey)
		for _, p := range append([]string{x.job.ID}, parts...) {
			m.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p)))) // never fails, as all hashes
			m.Write([]byte(p))
		}
		return hex.EncodeToString(m.Sum(nil)[:12])
	}
	for name, value := range fields {
		var inputs map[string]json.RawMessage
		switch {
		case name == "request_id":
		case name == "inputs" && json.Unmarshal(value, &inputs) == nil:
			for input, value := range inputs {
				key := "inputs." + mac("name", input)
				x.digest[key], x.inputs[key] = mac("input", input, canonical(value)), "inputs."+input
			}
		default:
			x.digest[name] = mac("field", name, canonical(value))
		}
	}
}

// canonical is a JSON value in the one form that all ways to write it have.
func canonical(v json.RawMessage) string {
	if b, err := protocol.CanonicalizeJSON(v); err == nil {
		return string(b)
	}
	return string(v)
}

// forPeople are the fields that tell people of a run and change nothing of what it does: one that is left out when a
// request is sent again makes no other request of it.
var forPeople = map[string]bool{"title": true, "description": true, "type": true, "scope": true, "tags": true, "created_by": true, "target_user": true}

// same is nil for the submission that a job came from, as far as its digests tell; else an error that wraps
// protocol.ErrRequestReused and names what differs.
func (x *submission) same(e queue.Entry) error {
	if e.Digest == nil {
		return nil
	}
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(x.digest)) {
		switch {
		case e.Digest[name] == x.digest[name]:
		case name == "workflow":
			differ = append(differ, fmt.Sprintf("workflow (%q, and it is %q)", x.job.Workflow, e.Workflow))
		case x.inputs[name] != "":
			differ = append(differ, x.inputs[name])
		default:
			differ = append(differ, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Digest)) {
		if _, has := x.digest[name]; has || forPeople[name] {
			continue
		}
		if strings.HasPrefix(name, "inputs.") {
			name = "an input that it lacks"
		}
		if !slices.Contains(differ, name) {
			differ = append(differ, name)
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return protocol.ErrRequestReused.With("", "the request id %q was used before, and this request differs in %s", x.job.ID, strings.Join(differ, ", "))
}
