package cas_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"wf/cas"
	"wf/cas/castest"
)

// patience is how long the tests wait for a store that others hold, however slow the machine.
const patience = 5 * time.Minute

func openStore(t *testing.T, dir string) *cas.Store {
	t.Helper()
	s, err := cas.Open(t.Context(), dir, cas.Options{Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStoreConforms(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	castest.ExerciseDir(t, openStore)
}

func TestStoreCollects(t *testing.T) {
	castest.ExerciseGC(t, openStore, func(t *testing.T, s *cas.Store) cas.GCReport {
		t.Helper()
		r, err := cas.GC(t.Context(), s, cas.GCOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	})
}
