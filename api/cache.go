package api

import "wf/protocol"

// CompactionPart is the part of a break that a compaction made, once and on purpose.
const CompactionPart = "compaction"

// Cache is how much of each prompt of a run the provider had seen before: wf.cache/v1.
type Cache struct {
	Schema       string         `json:"schema"`
	Run          protocol.RunID `json:"run"`
	MinPrefix    float64        `json:"min_prefix"`              // the least ratio of all calls but those after a compaction
	Compactions  int            `json:"compactions,omitempty"`   // prompts that a compaction broke on purpose
	MinCompacted *float64       `json:"min_compacted,omitempty"` // the least ratio of these

	Hit   *float64     `json:"hit"` // cached of input over all calls; null where nothing was reported
	Items []*CacheCall `json:"items"`
}

// CacheCall is one model call.
type CacheCall struct {
	Step    string  `json:"step"`
	Call    int     `json:"call"`           // of the visit, from 1
	Kind    string  `json:"kind,omitempty"` // what the call was for; "" is a turn of the visit
	Model   string  `json:"model"`
	Bytes   int     `json:"bytes"`      // of the visit's first request, P_k
	Before  string  `json:"before"`     // the visit whose prompt it goes on from, "" for none
	Of      int     `json:"of"`         // bytes of that prompt
	Shared  int     `json:"shared"`     // of these: what P_k begins with
	Ratio   float64 `json:"ratio"`      // shared / of; 1 where there is none
	Differs *int    `json:"differs_at"` // first byte that differs, null for none
	Part    string  `json:"part"`       // tools, system, history, compaction: what it lies in
	Input   *int64  `json:"input"`      // tokens, as these
	Cached  *int64  `json:"cached"`
	Written *int64  `json:"written"`
	Miss    string  `json:"miss"` // why less was read than could be; "" for no miss or no report
}
