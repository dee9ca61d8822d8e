package roles

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

// What names places of the user is no part of what a confined command has, whose walls have places of its own; on a machine
// without caches a build would find them nowhere. It is given where the role asks for it.
func TestM01AConfinedCommandHasPlacesOfItsOwn(t *testing.T) {
	r := &Run{Environ: []string{"PATH=/bin", "HOME=/h", "GOCACHE=/c", "XDG_CACHE_HOME=/x", "TERM=xterm", "KEY=k", "CC=gcc"},
		System: append([]string{"PATH", "TERM"}, placed...)}
	for _, x := range []struct {
		confined bool
		declared []string
		want     []string
	}{
		{true, nil, []string{"PATH=/bin"}},
		{true, []string{"CC", "HOME"}, []string{"CC=gcc", "HOME=/h", "PATH=/bin"}},
		{false, nil, []string{"GOCACHE=/c", "HOME=/h", "PATH=/bin", "XDG_CACHE_HOME=/x"}},
	} {
		turn := protocol.Turn{Confined: x.confined, Role: protocol.Role{Action: protocol.ActRun, Run: "true", Caching: &protocol.Caching{Whole: true, Env: x.declared}}, Inputs: protocol.JSON("{}")}
		f, err := r.Follows(t.Context(), turn, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(x.want, f.Environ); diff != "" {
			t.Errorf("confined %t, declared %v (-want +got):\n%s", x.confined, x.declared, diff)
		}
		for _, pair := range f.Environ { // each is a part of the key
			if name, _, _ := strings.Cut(pair, "="); !slices.ContainsFunc(f.Parts, func(p protocol.MemoPart) bool { return p.Name == "env "+name }) {
				t.Errorf("%s is no part of the key", name)
			}
		}
	}
}
