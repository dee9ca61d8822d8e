package engine_test

import (
	"flag"
	"os"
	"testing"

	"wf/agentkit/sandbox"
	"wf/cas/castest/inmemory"
	"wf/pgstore/pgtest"
)

// TestMain draws fewer examples than rapid would: each is four runs on a disk. More come by
// -rapid.checks.
func TestMain(m *testing.M) {
	sandbox.Main()
	if f := flag.Lookup("rapid.checks"); f != nil {
		if err := f.Value.Set("25"); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	inmemory.TempDirs()
	os.Exit(pgtest.Tests{M: m}.Run())
}
