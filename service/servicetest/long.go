package servicetest

import (
	"encoding/json"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

// long takes an input and an answer of several megabytes, and shows them whole.
func long(t *testing.T, suite Suite) {
	s := suite.open(t)
	topic := strings.Repeat("roads <and> rivers\n", 150_000) // 2.7 MB
	run := begin(t, s, topic)
	if v := shown(t, s, run); !strings.Contains(string(v.Info.Inputs), "rivers") || len(v.Info.Inputs) < len(topic) {
		t.Errorf("the inputs have %d bytes", len(v.Info.Inputs))
	}
	answer := strings.Repeat("yes \"really\"\n", 400_000) // 5.2 MB
	must(s.Answer(t.Context(), run, api.Answer{Text: answer}))(t)
	v := park(t, s, run)
	var said struct{ Text string }
	for _, x := range v.Steps {
		if x.ID == "gate#1" {
			if err := json.Unmarshal(x.Output, &said); err != nil {
				t.Fatal(err)
			}
		}
	}
	if v.Status != protocol.Done || said.Text != answer {
		t.Errorf("it is %s, and the answer has %d bytes of %d", v.Status, len(said.Text), len(answer))
	}
}
