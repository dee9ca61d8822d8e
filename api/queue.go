package api

// QueuePlace is the place of a run or a step that waits for a slot of its concurrency group.
type QueuePlace struct {
	Group  string   `json:"group"`
	Ticket int64    `json:"ticket"` // lower ones come first
	Behind []string `json:"behind"` // what holds the slots: RUN, or RUN:STEP
	Ahead  int      `json:"ahead"`  // how many wait before it
}
