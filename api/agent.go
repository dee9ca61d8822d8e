package api

// Agent is what is known of the first agent of a run where the run is.
type Agent struct {
	Model  string // that it uses, "" is not known
	Window int64  // tokens at which its conversation is compacted, 0 is not known
	Memory string // scope of the memory of the first agent that has one, "" for none
}
