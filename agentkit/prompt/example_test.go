package prompt_test

import (
	"fmt"

	"wf/agentkit/prompt"
	"wf/protocol"
)

// The first request of a visit follows from its records alone. What a role said before stands
// in it verbatim, and what others did since is a summary at its end.
func ExampleBuildMessages() {
	cid := func(name string) protocol.Link {
		return prompt.Digest("", []protocol.Message{{Content: name}}) // any CID will do here
	}
	messages, err := prompt.BuildMessages(protocol.History{
		Role: "coder", System: "You fix Go tests.",
		Visit: protocol.Past{Role: "coder", Visit: 2, EdgePrompt: "Still red.",
			Parents: []protocol.Link{cid("test#1")}, Resumes: cid("coder#1")},
		Past: []protocol.Past{
			{CID: cid("coder#1"), Role: "coder", Visit: 1, EdgePrompt: "Make it green.", Status: protocol.StepOK, Text: "I fixed Add."},
			{CID: cid("test#1"), Role: "test", Visit: 1, Parents: []protocol.Link{cid("coder#1")}, Status: protocol.StepOK,
				Data: protocol.JSON(`{"exit_code":1}`), Text: "--- FAIL: TestSub"},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range messages {
		fmt.Printf("%s: %s\n", m.Role, m.Content)
	}
	// Output:
	// system: You fix Go tests.
	// user: Make it green.
	// assistant: I fixed Add.
	// user: Still red.
	//
	// ## What happened since
	//
	// ### test#1 · ok
	// exit_code: 1
	//
	// --- FAIL: TestSub
}
