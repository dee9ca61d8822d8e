package cas

import (
	"context"
	"maps"
	"slices"
	"strings"

	"wf/protocol"
)

// loose is where a block lies that can only be found by having seen it.
type loose struct {
	at     int64 // of the stored pack, in the file
	length int
	index  int
}

// sweep gathers blocks and heads from every page that looks like one of theirs.
func (d *storeEvidence) sweep(ctx context.Context) error {
	d.swept = true
	have := map[string]Head{}
	for _, h := range d.heads {
		have[h.Name] = h
	}
	n := 0
	err := d.pages.sweep(func(it pageItem) error {
		if n++; n%64 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(it.key) == packKeySize {
			us, _ := d.open(it.value) // what is not a pack is something else
			for i := range us {
				if us[i].codec != 0 { // else it is in a damaged part of the pack
					d.g.add(blockName{us[i].codec, us[i].digest}, us[i].data)
					if _, known := d.loose[us[i].digest]; !known {
						d.loose[us[i].digest] = loose{it.at, len(it.value), i}
					}
				}
			}
			return nil
		}
		if name := string(it.key); (strings.HasPrefix(name, "run/") || strings.HasPrefix(name, "memory/") || strings.HasPrefix(name, "notify/") || strings.HasPrefix(name, protocol.DeletedHead(""))) && !strings.Contains(name, "\x00") {
			// A page that is free may hold an older head of the same name: the newest wins.
			if h, err := parseHead(name, it.value); err == nil && (h.Seq > have[name].Seq || !have[name].Link.Defined()) {
				have[name] = h
			}
		}
		return nil
	})
	for name := range have { // a free page may hold the head that a run had before it was deleted
		if run, ok := protocol.RunDeleted(name); ok {
			delete(have, protocol.RunHead(run))
		}
	}
	d.heads = slices.Collect(maps.Values(have))
	return err
}
