package query

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDifferencesAreNamedByTheirPath(t *testing.T) {
	l := map[string]any{"name": "x", "roles": []any{map[string]any{"name": "a", "run": "true"}, map[string]any{"name": "b"}}}
	r := map[string]any{"name": "x", "roles": []any{map[string]any{"name": "b"}, map[string]any{"name": "a", "run": "false"}}}
	if d := cmp.Diff([]string{`roles.a.run "true" → "false"`}, differing("", l, r, nil)); d != "" {
		t.Error(d)
	}
	if got := differing("", l, l, nil); len(got) > 0 {
		t.Errorf("the same differs: %v", got)
	}
}
