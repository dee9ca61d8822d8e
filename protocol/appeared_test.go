package protocol_test

import (
	"encoding/json"
	"os"
	"testing"

	"wf/protocol"
)

// The page says the same in its tests.
func TestWhatAppearedIsSaidInOneLine(t *testing.T) {
	raw, err := os.ReadFile("testdata/appeared.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Appeared protocol.Appeared `json:"appeared"`
		Text     string            `json:"text"`
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if got := c.Appeared.String(); got != c.Text {
			t.Errorf("%+v:\n%s\nwant\n%s", c.Appeared, got, c.Text)
		}
	}
}
