package pgstore_test

import (
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
)

func TestCopy(t *testing.T) {
	srv := running(t)
	database := castest.Place{
		Open: func(t *testing.T) cas.Keeper { return open(t, fresh(t, srv)) },
		Verify: func(t *testing.T, s cas.Keeper) cas.Report {
			t.Helper()
			return verified(t, s.(*pgstore.Store), cas.VerifyOptions{})
		},
	}
	t.Run("into a database", func(t *testing.T) { castest.ExerciseCopy(t, castest.Directory, database) })
	t.Run("out of a database", func(t *testing.T) { castest.ExerciseCopy(t, database, castest.Directory) })
}
