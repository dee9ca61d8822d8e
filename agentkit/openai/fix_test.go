package openai_test

import (
	"strings"
	"testing"

	"wf/agentkit/modeltest"
	"wf/agentkit/openai"
)

// A refusal that a person has to mend says where to look; where nothing is known of the key, or waiting mends it, nothing is said.
func TestARefusalSaysWhereToLook(t *testing.T) {
	for _, c := range []struct {
		status  int
		keyFrom string
		want    string
	}{
		{401, "WORK_KEY", "the key in WORK_KEY"}, {403, "WORK_KEY", "the key in WORK_KEY"}, {401, "", ""},
		{404, "WORK_KEY", "wf models --probe"}, {500, "WORK_KEY", ""}, {400, "WORK_KEY", ""},
	} {
		s := modeltest.Start(t, modeltest.Answer{Status: c.status, Body: `{"error":{"message":"no"}}`})
		m, err := openai.New("work/m", "m", openai.Config{BaseURL: s.URL, Key: "k", KeyFrom: c.keyFrom})
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.GenerateContent(t.Context(), hello)
		if err == nil || !strings.Contains(err.Error(), c.want) || (c.want == "") == strings.Contains(err.Error(), "Fix: ") {
			t.Errorf("status %d, key from %q: %v", c.status, c.keyFrom, err)
		}
	}
}
