package render

import (
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/protocol"
)

func TestAQuestionSaysUntilWhenAndOfWhomItIsAsked(t *testing.T) {
	due := func(d time.Duration) *api.Time { return new(time.Now().Add(d).UTC().Format(time.RFC3339Nano)) }
	for _, test := range []struct {
		w    api.Waiting
		want string // … stands for the time
	}{
		{api.Waiting{Kind: protocol.WaitQuestion}, ""},
		{api.Waiting{Kind: protocol.WaitTimer, Due: due(time.Hour)}, ""},
		{api.Waiting{Kind: protocol.WaitChoice, Due: due(time.Hour), OnTimeout: "reject"}, "answers until …, then reject"},
		{api.Waiting{Kind: protocol.WaitChoice, Due: due(time.Hour), OnTimeout: "fail", Assignees: []string{"anna", "b\x1b[2Jen"}}, `answers until …, then it fails, asked of anna, b`},
		{api.Waiting{Kind: protocol.WaitChoice, Due: due(time.Hour), OnTimeout: "escalate"}, "answers until …, then it is escalated"},
		{api.Waiting{Kind: protocol.WaitChoice, Due: due(-time.Hour), OnTimeout: "x"}, "the time to answer was over at …, then x"},
		{api.Waiting{Kind: protocol.WaitChoice, Due: due(time.Hour)}, "answers until …"},
		{api.Waiting{Kind: protocol.WaitQuestion, Assignees: []string{"anna"}}, "asked of anna"},
	} {
		got := Asking(test.w)
		if test.w.Due != nil && test.want != "" {
			at, err := time.Parse(time.RFC3339, *test.w.Due)
			if err != nil {
				t.Fatal(err)
			}
			got = strings.Replace(got, clock(at.UnixMicro()), "…", 1)
		}
		if !strings.HasPrefix(got, test.want) || strings.Contains(got, "\x1b") || !strings.Contains(test.want, ", b") && got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
