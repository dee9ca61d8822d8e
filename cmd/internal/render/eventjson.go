package render

import (
	"encoding/json"
	"fmt"
	"time"

	"wf/cas"
	"wf/protocol"
)

// EventJSON is one line of wf replay and of a stream.
type EventJSON struct {
	Seq  protocol.Seq       `json:"seq"`
	TS   string             `json:"ts"`
	Type protocol.EventType `json:"type"`
	Step *string            `json:"step"`
	CID  protocol.Link      `json:"-"`
	Prev protocol.Link      `json:"-"`
	Data json.RawMessage    `json:"-"`
}

// MarshalJSON writes CIDs as plain strings, prev null for the first event.
func (e EventJSON) MarshalJSON() ([]byte, error) {
	type plain EventJSON
	return json.Marshal(struct {
		plain
		CID  string          `json:"cid"`
		Prev *string         `json:"prev"`
		Data json.RawMessage `json:"data"`
	}{plain(e), e.CID.String(), linkString(e.Prev), e.Data})
}

// linkString is a CID as JSON has it: null for none.
func linkString(l protocol.Link) *string {
	if !l.Defined() {
		return nil
	}
	s := l.String()
	return &s
}

// TimeText is a time as JSON has it.
func TimeText(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02T15:04:05.000000Z") }

// NewEventJSON shows an event with its decoded data: linked texts inline, other links as
// {"/":"cid"}, keys of later versions kept. d is nil for a type of a later version.
func NewEventJSON(e *protocol.Entry, d protocol.Data) (EventJSON, error) {
	out := EventJSON{Seq: e.Seq, TS: TimeText(e.TS), Type: e.Type, Step: e.Step, CID: e.CID, Prev: e.Prev}
	stored, err := cas.ToJSON(e.Data)
	if err != nil {
		return out, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	out.Data = stored
	if d == nil || !e.Type.Spec().HasTexts() {
		return out, nil
	}
	resolved, err := json.Marshal(d)
	if err != nil {
		return out, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	var all, known map[string]json.RawMessage
	if err := json.Unmarshal(stored, &all); err != nil {
		return out, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	if err := json.Unmarshal(resolved, &known); err != nil {
		return out, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	for key, value := range known {
		if _, there := all[key]; there {
			all[key] = value
		}
	}
	out.Data, err = json.Marshal(all)
	return out, err
}
