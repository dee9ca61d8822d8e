package render

import (
	"fmt"
	"slices"
	"strconv"

	"wf/api"
	"wf/protocol"
)

// ShowCache writes how much of each prompt the provider has seen before.
func (p *Printer) ShowCache(c *api.Cache) error {
	rows := p.head("step", "call", "prompt", "of the one before", "differs", "input", "cached", "written", "miss")
	for _, i := range c.Items {
		shared, differs := "", ""
		if i.Before != "" {
			shared = fmt.Sprintf("%d of %d bytes, %s", i.Shared, i.Of, i.Before)
		}
		if i.Differs != nil {
			differs = fmt.Sprintf("byte %d, %s", *i.Differs, i.Part)
		}
		rows = append(rows, []string{i.Step, strconv.Itoa(i.Call), fmt.Sprintf("%d bytes", i.Bytes), shared, differs, Count(i.Input), Count(i.Cached), Count(i.Written), i.Miss})
	}
	if err := Table(p.Out, rows); err != nil {
		return err
	}
	if len(c.Items) == 0 {
		_, err := fmt.Fprintln(p.Out, "no model calls: there is nothing to compare")
		return err
	}
	hit := "not told"
	if c.Hit != nil {
		hit = fmt.Sprintf("%.1f %%", *c.Hit*100)
	}
	least := fmt.Sprintf("shared prefix ≥ %.4f", c.MinPrefix)
	if !slices.ContainsFunc(c.Items, func(i *api.CacheCall) bool { return i.Before != "" }) {
		least = "no call goes on from another: no prefix to compare"
	}
	if n := c.Compactions; n > 0 {
		least += fmt.Sprintf(", but ≥ %.4f after %s", *c.MinCompacted, protocol.Plural(n, "compaction"))
	}
	_, err := fmt.Fprintf(p.Out, "%s   read from the cache: %s\n", least, hit)
	return err
}
