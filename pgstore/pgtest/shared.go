package pgtest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Shared is the server that the tests of a package share, and do not stop; see Needed, and Tests.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = Start() })
	Needed(t, shared.err)
	return shared.server
}

// Own is a server of one test, which may stop it.
func Own(t testing.TB) *Server {
	t.Helper()
	s, err := Start()
	Needed(t, err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Needed fails a test that did not get its server. Where there is no PostgreSQL the test is skipped, but not where CI=true.
func Needed(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Tests are those of a package, behind which the server of Shared is stopped: os.Exit(pgtest.Tests{M: m}.Run()).
type Tests struct {
	M interface{ Run() int }
}

// Run runs them and gives the status to exit with.
func (x Tests) Run() int {
	status := x.M.Run()
	if shared.server != nil {
		if err := shared.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	return status
}
