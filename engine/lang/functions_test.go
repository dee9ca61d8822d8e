package lang

import (
	"slices"
	"testing"

	"github.com/expr-lang/expr/builtin"
	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

// TestEveryFunctionIsOnThePageWithATrueExample holds the list against what expressions can call, in both directions.
func TestEveryFunctionIsOnThePageWithATrueExample(t *testing.T) {
	var can []string
	for _, name := range builtin.Names {
		if !slices.Contains(disabled, name) {
			can = append(can, name)
		}
	}
	slices.Sort(can)
	if diff := cmp.Diff(can, functionNames()); diff != "" {
		t.Errorf("functions (-callable +listed):\n%s", diff)
	}
	for _, group := range functions {
		for _, f := range group.of {
			c, err := compile(f.shown, strict)
			if err != nil {
				t.Errorf("%s: %v", f.call, err)
				continue
			}
			v, err := c.eval(&env{Budget: newBudget()})
			if err != nil {
				t.Errorf("%s: %v", f.call, err)
				continue
			}
			if got, err := protocol.CanonicalJSON(v); err != nil || string(got) != f.gives {
				t.Errorf("%s is %s, not %s (%v)", f.shown, got, f.gives, err)
			}
		}
	}
}
