package rules

import (
	"fmt"

	"wf/protocol"
)

// Compacts reports whether a visit is to begin with a compaction, since a person asked for one. It holds for
// the first visit of an agent that begins then and goes on with a conversation.
func (s *State) Compacts(d Decision) bool {
	return s.Compact && s.isAgent(d.Role) && d.Resumes.Defined()
}

// unsized marks a visit without a count of its first request: its prompt changed after it
// had been sent.
const unsized = -1

// measured notes what the first request of a visit held: the next visit of the conversation
// decides by it whether to compact.
func (s *State) measured(step string, d protocol.Usage) {
	if step == "" || d.Kind != protocol.UsageTurn || d.Input == nil || d.Child != nil {
		return
	}
	if v, _, err := s.visitNamed(step); err == nil && v.Size == 0 {
		v.Size = *d.Input
	}
}

// learnt notes what a model reads at most, from its refusal of a longer request.
func (s *State) learnt(d protocol.Usage) {
	if known := s.Windows[d.Model]; d.Window > 0 && (known == 0 || d.Window < known) {
		if s.Windows == nil {
			s.Windows = map[string]int64{}
		}
		s.Windows[d.Model] = d.Window
	}
}

// compacted makes a visit, and what follows it, resume a Compaction.
func (s *State) compacted(step string, d protocol.Compacted) error {
	if d.Scope != protocol.ScopeConversation {
		return nil
	}
	v, _, err := s.visitNamed(step)
	if err != nil {
		return err
	}
	if !d.Record.Defined() {
		return fmt.Errorf("%s was compacted without a record: %w", step, protocol.ErrCorrupt)
	}
	v.Resumes, v.Compacted = d.Record, true
	if v.Size != 0 {
		v.Size = unsized
	}
	return nil
}
