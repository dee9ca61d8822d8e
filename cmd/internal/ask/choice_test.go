package ask_test

import (
	"testing"

	"wf/cmd/internal/ask"
	"wf/protocol"
)

func TestAChoiceIsNamed(t *testing.T) {
	words := []protocol.Choice{{Value: "allow", Label: "Yes"}, {Value: "deny", Label: "No"}}
	numbers := []protocol.Choice{{Value: "3"}, {Value: "1"}, {Value: "20", Label: "twenty"}}
	for _, c := range []struct {
		of   []protocol.Choice
		text string
		want int
	}{
		{words, "deny", 1}, {words, "NO", 1}, {words, "1", 0}, {words, "2", 1}, {words, "0", -1}, {words, "3", -1}, {words, "", -1}, {words, "maybe", -1},
		{numbers, "3", 0}, {numbers, "1", 1}, {numbers, "2", -1}, {numbers, "20", 2}, {numbers, "Twenty", 2}, {nil, "1", -1},
	} {
		if got := ask.Choice(c.of, c.text); got != c.want {
			t.Errorf("%q of %v is %d, want %d", c.text, c.of, got, c.want)
		}
	}
}
