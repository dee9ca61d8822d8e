package protocol

// UsageSum is the sum of model calls, in tokens; what no provider reported is null.
type UsageSum struct {
	Calls        int    `cbor:"calls" json:"calls"`
	Input        *int64 `cbor:"input" json:"input"`
	Cached       *int64 `cbor:"cached" json:"cached"`
	CacheWrite5m *int64 `cbor:"cache_write_5m" json:"cache_write_5m"`
	CacheWrite1h *int64 `cbor:"cache_write_1h" json:"cache_write_1h"`
	Output       *int64 `cbor:"output" json:"output"`
	Reasoning    *int64 `cbor:"reasoning" json:"reasoning"`
}

// Add counts one more call.
func (u *UsageSum) Add(x Usage) {
	u.Calls++
	sum := func(to **int64, n *int64) {
		if n == nil {
			return
		}
		if *to == nil {
			*to = new(int64)
		}
		**to += *n
	}
	sum(&u.Input, x.Input)
	sum(&u.Cached, x.Cached)
	sum(&u.CacheWrite5m, x.CacheWrite5m)
	sum(&u.CacheWrite1h, x.CacheWrite1h)
	sum(&u.Output, x.Output)
	sum(&u.Reasoning, x.Reasoning)
}

// RoleEntered is what a run did with a role.
type RoleEntered struct {
	Role   string `json:"role"`
	Visits int    `json:"visits"` // a fan-out is one
	Status string `json:"status"` // of its newest visit
}

// Way is a way out of an edge: to one of its targets, or to where its bound diverts it.
type Way struct {
	Edge  int    `cbor:"edge" json:"edge"` // index in the definition
	To    string `cbor:"to" json:"to"`
	Limit bool   `cbor:"limit,omitempty" json:"limit,omitempty"` // since a bound was exhausted
}

// WayTaken is a way that a run took.
type WayTaken struct {
	Way
	Times int `cbor:"times" json:"times"`
}
