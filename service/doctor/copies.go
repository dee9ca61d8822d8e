package doctor

import (
	"fmt"
	"time"

	"wf/api"
	"wf/protocol"
	"wf/roles"
	"wf/service/compose"
)

// checkCopies looks at the copies of workspaces that visits and forks have for themselves; nothing is told where there are none.
func checkCopies(now time.Time, clean bool) []api.Checkup {
	root := compose.Copies()
	if root == "" {
		return nil
	}
	all, old, size, err := roles.SweepOwnCopies(root, now.Add(-privateLife), clean)
	c := api.Checkup{Name: "copies", State: "ok"}
	switch {
	case err != nil:
		c.State, c.Text, c.Fix = "note", err.Error(), "remove what is named by hand"
	case all == 0:
		return nil
	default:
		c.Text = fmt.Sprintf("%s of visits and forks, in %s", protocol.Plural(all, "workspace"), root)
	}
	switch {
	case clean && old > 0:
		c.Text += fmt.Sprintf("; removed %d, unused for 30 days: %.1f MB", old, float64(size)/1e6)
	case old > 0:
		c.Text += fmt.Sprintf("; %d unused for 30 days: %.1f MB", old, float64(size)/1e6)
		c.Fix = "wf doctor --clean"
	}
	return []api.Checkup{c}
}
