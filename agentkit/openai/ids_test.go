package openai

import (
	"regexp"
	"testing"
)

// Mistral takes ids of nine letters and digits alone; a result keeps its call.
func TestF109IdsForMistral(t *testing.T) {
	m, err := New("mistral/x", "x", Config{BaseURL: "https://api.mistral.ai/v1"})
	if err != nil {
		t.Fatal(err)
	}
	all := []message{{ToolCalls: []call{{ID: "toolu_01AbC"}, {ID: "D681PevKs"}}}, {ToolCallID: "toolu_01AbC"}, {ToolCallID: "D681PevKs"}, {Role: "user"}}
	server{nine: m.nine}.rename(all)
	first := all[0].ToolCalls[0].ID
	if !regexp.MustCompile(`^[a-zA-Z0-9]{9}$`).MatchString(first) || all[1].ToolCallID != first || all[0].ToolCalls[1].ID != "D681PevKs" || all[2].ToolCallID != "D681PevKs" {
		t.Errorf("got %+v", all)
	}
}
