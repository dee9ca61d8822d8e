package appear

import (
	"path/filepath"
	"strings"

	"wf/roles/workspace/control"
)

// Held tells of paths of a workspace whether git or wf acts on what lies at one or would, by the repositories in it and the one in which
// it lies, and by which name: what commands made elsewhere, where nothing is read-only that is so here, does not come there unseen.
func Held(root string) (by func(path string) string, err error) {
	w, err := Of(root)
	if err != nil {
		return nil, err
	}
	w.Look()
	eye, held := control.At(w.root), map[string]string{}
	add := func(parts control.Parts, err error) error {
		for _, p := range parts.Places {
			held[p.Path] = p.Name
			for _, l := range p.Links {
				held[l.Path] = p.Name
			}
		}
		return err
	}
	for _, r := range w.Repositories() {
		if err := add(r.Parts(eye)); err != nil {
			return nil, err
		}
	}
	above, err := eye.Above()
	if err == nil && above != "" {
		err = add(eye.Repository(above))
	}
	return func(path string) string {
		for at := filepath.Join(w.root, filepath.FromSlash(path)); strings.HasPrefix(at, w.root+"/"); at = filepath.Dir(at) {
			if name := held[at]; name != "" {
				return w.rel(name)
			}
		}
		return ""
	}, err
}
