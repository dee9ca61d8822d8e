package hook

import (
	"os"
	"testing"

	"wf/cas/castest/inmemory"
)

func TestMain(m *testing.M) {
	inmemory.TempDirs()
	os.Exit(m.Run())
}
