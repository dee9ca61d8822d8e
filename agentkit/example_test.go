package agentkit_test

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/fake"

	"wf/agentkit"
	"wf/protocol"
)

// The first request of a visit follows from its records alone. What a role said before stands
// in it verbatim, and what others did since is a summary at its end.
func ExampleBuildMessages() {
	cid := func(name string) protocol.Link {
		return agentkit.Digest("", []protocol.Message{{Content: name}}) // any CID will do here
	}
	messages, err := agentkit.BuildMessages(protocol.History{
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

// Any langchaingo model plugs in: a prefix of its own in the registry, and roles name it.
func ExampleRegistry() {
	models := agentkit.Standard()
	models["house"] = func(_, _ string) (llms.Model, error) { return fake.NewFakeLLM([]string{"Good day."}), nil }

	agent := agentkit.Agent{Models: models.Open}
	turn := protocol.Turn{Models: []string{"house/butler"}, Role: protocol.Role{Name: "butler", Action: protocol.ActPrompt},
		History: protocol.History{Format: protocol.Format, Role: "butler", System: "You greet.", Visit: protocol.Past{Role: "butler", Visit: 1, EdgePrompt: "A guest."}}}
	emit := func(_ context.Context, data ...protocol.Data) error {
		for _, d := range data {
			fmt.Println(d.EventType())
		}
		return nil
	}
	said, err := agent.Perform(context.Background(), turn, emit)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*said.Text)
	// Output:
	// prompt
	// text
	// usage
	// Good day.
}
