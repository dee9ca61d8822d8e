package rules

import "wf/protocol"

// reused notes that a visit takes an earlier result, or, with nil, that it is performed after all. What the first request of
// that performance held is what its own would have.
func (s *State) reused(step string, by *protocol.Reused) error {
	v, _, err := s.visitNamed(step)
	if err != nil {
		return err
	}
	switch {
	case by != nil && v.Size == 0:
		v.Size = by.Opening
	case by == nil && v.Reused:
		v.Size = 0
	}
	v.Reused = by != nil
	return nil
}

// counted adds a visit that ended to the totals.
func (s *State) counted(v *visit) {
	role, ok := s.prog.Workflow.RoleNamed(v.of.Role)
	switch {
	case v.Reused:
		s.Totals.Reused++
	case ok && role.Action != protocol.ActSet && v.Status != protocol.StepSkipped:
		s.Totals.Performed++
	}
}
