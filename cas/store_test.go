package cas_test

import (
	"testing"

	"go.uber.org/goleak"

	"wf/cas"
	"wf/cas/castest"
)

func openStore(t *testing.T, dir string) *cas.Store {
	t.Helper()
	s, err := cas.Open(t.Context(), dir, cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStoreConforms(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	castest.Exercise(t, openStore)
}
