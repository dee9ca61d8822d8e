package config

import (
	"encoding/json"
	"fmt"
	"time"
)

// Retention says after how long runs that have ended are deleted. The zero value deletes nothing. Only the user
// can say so, for all stores of this machine.
type Retention struct {
	Done      Age `json:"done"` // since the run moved last; 0 is never
	Failed    Age `json:"failed"`
	Cancelled Age `json:"cancelled"`
	Files     Age `json:"files"` // since the run moved last: the files of its workspace, which goes on without them; 0 is never
	KeepLast  int `json:"keep_last"` // of each workflow so many of the newest stay, whatever their age
	Floor     Age `json:"floor"`     // what moved since is never deleted; 0 is a day
}

// Keep is the tag of runs that no retention deletes.
const Keep = "keep"

// Age is a time span that is written as 30d, 2w or 12h.
type Age time.Duration

// UnmarshalJSON reads a time span of more than nothing.
func (a *Age) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("an age is written as 30d or 12h, not %s", b)
	}
	d, err := ParseAge(text)
	*a = Age(d)
	return err
}

// After is after how long a run of a status is deleted; 0 is never.
func (r Retention) After(status string) time.Duration {
	age := map[string]Age{"done": r.Done, "failed": r.Failed, "cancelled": r.Cancelled}[status]
	return r.atLeast(age)
}

// AfterFiles is after how long the files of a run that has ended are dropped; 0 is never.
func (r Retention) AfterFiles() time.Duration { return r.atLeast(r.Files) }

// atLeast is an age, or the floor; 0 stays 0.
func (r Retention) atLeast(age Age) time.Duration {
	if age == 0 {
		return 0
	}
	floor := r.Floor
	if floor == 0 {
		floor = Age(24 * time.Hour)
	}
	return time.Duration(max(age, floor))
}

// check refuses what is no retention.
func (r Retention) check() error {
	if r.KeepLast < 0 {
		return fmt.Errorf("retention: keep_last: %d is fewer than none", r.KeepLast)
	}
	return nil
}
