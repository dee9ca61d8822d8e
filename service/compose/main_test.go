package compose

import (
	"os"
	"testing"

	"wf/agentkit/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}
