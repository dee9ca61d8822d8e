package memory

import "context"

// Restored is a state that went through a snapshot with the keys of a model.
func Restored(s *State, model string) (*State, error) { return restored(s.snapshot(model), s.Head) }

// RestoredFrom reads a snapshot that may be damaged.
func RestoredFrom(data []byte) (*State, error) { return restored(data, (&State{}).Head) }

// SnapshotOf is the snapshot of a state.
func SnapshotOf(s *State, model string) []byte { return s.snapshot(model) }

// KeepNow keeps a snapshot, whether or not one is due.
func KeepNow(ctx context.Context, s *Store) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return err
	}
	if model, err := s.modelName(s.state); err != nil {
		return err
	} else if s.state.keyed(model) {
		s.c.Journal.(Snapshots).KeepSnapshot(ctx, s.state.snapshot(model), s.state.Head)
	}
	return nil
}
