package agentkit_test

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/fake"

	"wf/agentkit"
	"wf/protocol"
)

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
