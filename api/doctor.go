package api

// Checkup is one thing that wf doctor looked at.
type Checkup struct {
	Name  string `json:"name"`
	State string `json:"state"` // ok; note: it works with less; bad: it does not work
	Text  string `json:"text"`
	Fix   string `json:"fix"`
}

// Doctor is wf.doctor/v1.
type Doctor struct {
	Schema string    `json:"schema"`
	OK     bool      `json:"ok"` // nothing is bad
	Items  []Checkup `json:"items"`
}
