package memory

// Restored is a state that went through a snapshot with the keys of a model.
func Restored(s *State, model string) (*State, error) { return restored(s.snapshot(model), s.Head) }

// RestoredFrom reads a snapshot that may be damaged.
func RestoredFrom(data []byte) (*State, error) { return restored(data, (&State{}).Head) }

// SnapshotOf is the snapshot of a state.
func SnapshotOf(s *State, model string) []byte { return s.snapshot(model) }
