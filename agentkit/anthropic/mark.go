package anthropic

// MarkReach is how many blocks may lie between two marks before a further one is set. The API
// looks for an earlier entry at most 20 blocks back from a mark.
const MarkReach = 15

// mark makes what precedes its block an entry of the prefix cache.
type mark struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

// mark sets the cache marks. Everything up to the last one but the newest was marked by an
// earlier request too, so its entry is found again.
func (c *conversation) mark(tools []offeredTool, ttl string) {
	m := &mark{Type: "ephemeral"}
	if ttl == "1h" {
		m.TTL = ttl // 5m is the API's default
	}
	switch {
	case len(c.system) > 0:
		c.system[len(c.system)-1].Mark = m
	case len(tools) > 0:
		tools[len(tools)-1].Mark = m
	}
	markLast(c.blocks[:c.prompt], m)
	if n := len(c.ends); n > 0 {
		markLast(c.blocks[:c.ends[n-1]], m)
		before := c.prompt
		if n > 1 {
			before = c.ends[n-2]
		}
		if before > c.prompt && c.ends[n-1]-c.prompt > MarkReach {
			markLast(c.blocks[:before], m)
		}
	}
}

// markLast marks the newest block that takes a mark.
func markLast(blocks []*block, m *mark) {
	for i := len(blocks) - 1; i >= 0; i-- {
		if blocks[i].raw == nil {
			blocks[i].Mark = m
			return
		}
	}
}
