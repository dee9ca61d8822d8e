package api

import (
	"encoding/json"

	"wf/protocol"
)

// CostGroups are what costs can be summed by. Kinds are: visit, the calls of first attempts;
// retry, those of later ones; compaction, the summaries; failed, those that gave no answer.
var CostGroups = []string{"role", "step", "task", "model", "kind"}

// Cost is what the model calls of a run used: wf.cost/v1.
type Cost struct {
	Schema string         `json:"schema"`
	Run    protocol.RunID `json:"run"`
	By     string         `json:"by"`     // what it is summed by
	Prices string         `json:"prices"` // date of the table
	Items  []*CostRow     `json:"items"`
	Total  *CostRow       `json:"total"`
	Reused int            `json:"reused,omitempty"` // steps that took an earlier result: they cost nothing, and have no calls
}

// CostRow is a sum over calls, in tokens and dollars.
type CostRow struct {
	Name         string       `json:"name,omitempty"`
	Goal         string       `json:"goal,omitempty"` // of a task
	Calls        int          `json:"calls"`
	Unreported   int          `json:"unreported"` // calls of which the provider reported no tokens
	Input        int64        `json:"input"`
	Cached       int64        `json:"cached"`
	CacheWrite5m int64        `json:"cache_write_5m"`
	CacheWrite1h int64        `json:"cache_write_1h"`
	Output       int64        `json:"output"`
	CostUSD      *json.Number `json:"cost_usd"`  // null where a price is unknown
	KnownUSD     json.Number  `json:"known_usd"` // of the calls whose price is known
}
