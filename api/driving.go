package api

// Driving tells whether a process drives a run whose status is running or queued. The journal cannot: a
// process that was killed writes nothing.
type Driving struct {
	Driven *bool `json:"driven,omitempty"` // whether a process drives the run; left out unless it is running or queued, and where that is not known
	Idle   Idle  `json:"idle,omitempty"`   // where driven is false
	// Lacks is, where driven is false, what is missing so that a process can go on with it, of this one and all workers of the store: what
	// roles need, and place:MACHINE where its files are on another machine. Of several workers that lack something it is what lacks least.
	Lacks []string `json:"lacks,omitempty"`
}

// Settled reports whether it stays as it is until the next event of the run: a process can be killed
// between two events.
func (d Driving) Settled() bool { return d.Driven == nil }

// Idle is why no process drives a run that could go on: its process was killed or could not write, none
// has driven it yet, or it was answered while none was there. POST …/resume goes on.
type Idle string

const (
	// Interrupted is a run whose process was killed, lost its machine or could not write.
	Interrupted Idle = "interrupted"
	// NotStarted is a run that was begun or forked, and that no process has driven yet.
	NotStarted Idle = "not_started"
	// Unattended is a run that is queued for its concurrency group, while no process waits for its turn.
	Unattended Idle = "unattended"
	// Answered is a run that got what it waited for, while no process was there to go on.
	Answered Idle = "answered"
)
