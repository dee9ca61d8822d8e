package protocol

import (
	"maps"
	"slices"
)

// Trust is for whom a confined command works. Commands of equal trust in one run share HOME and TMPDIR, those of equal trust in
// one workflow and workspace their caches; no others do. What the walls open for a command is a part of its trust, too.
type Trust struct {
	Run      RunID    // "" is a command of no run: what it leaves goes with it
	Workflow string   // its name
	Secrets  []string // names of those that the command is given, sorted
}

// Trust is that of the commands of the turn.
func (t *Turn) Trust() Trust {
	given := map[string]bool{}
	for _, value := range t.Env {
		ExpandSecrets(value, func(name string) (string, bool) {
			given[name] = true
			return "", true
		})
	}
	return Trust{t.Run, t.Workflow, slices.Sorted(maps.Keys(given))}
}
