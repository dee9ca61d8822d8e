package sandbox_test

import (
	"bytes"
	"fmt"
	"testing"
	"os"

	"wf/agentkit/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}

func TestX(t *testing.T) {
	fmt.Printf("%+v\n", sandbox.Probe())
	var out, errs bytes.Buffer
	code, err := sandbox.Run(t.Context(), sandbox.Policy{Workspace: t.TempDir()}, []string{"sh", "-c", os.Getenv("CMD")}, &out, &errs)
	fmt.Println(code, err)
	fmt.Println(out.String(), errs.String())
}
