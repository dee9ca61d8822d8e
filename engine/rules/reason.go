package rules

import (
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// What a run says of why it stopped, in words.

// failedBy says what led a run to FAIL, with what the edge says on the way.
func (s *State) failedBy(f firing, t target) string {
	said := s.lastWords(f)
	if t.via == protocol.ViaLimit {
		return s.boundName(f) + ", which leads to FAIL" + said
	}
	var names []string
	for _, a := range f.sources {
		names = append(names, a.name())
	}
	return strings.Join(names, " and ") + " led to FAIL" + said
}

// lastWordsMax bounds in runes what a reason quotes of a prompt.
const lastWordsMax = 500

// lastWords is the prompt of an edge that no role hears, as the end of a sentence.
func (s *State) lastWords(f firing) string {
	sc, err := s.promptScope(f.edge, f.up)
	var prompt string
	if err == nil {
		prompt, err = s.prog.EdgePrompt(f.edge, sc)
	}
	if err != nil {
		return fmt.Sprintf(" (its prompt has no value: %v)", err)
	}
	words := []rune(strings.Join(strings.Fields(prompt), " "))
	switch {
	case len(words) == 0:
		return ""
	case len(words) > lastWordsMax:
		words = append(words[:lastWordsMax-1], '…')
	}
	return ": " + string(words)
}

// failure says why the visits of a failed.
func (s *State) failure(a *act) string {
	for _, v := range a.visits {
		if v.Status == protocol.StepFailed && v.LastErr != "" {
			return fmt.Sprintf("%s: %s", v.id(), v.LastErr)
		}
	}
	return fmt.Sprintf("%s#%d failed", a.Role, a.Num)
}

// stalled names what keeps a run from going on: tokens no edge takes, joins and what they lack.
func (s *State) stalled(fs []firing) string {
	var out []string
	for _, a := range s.agenda.tokens {
		if s.routed(a).dead {
			out = append(out, fmt.Sprintf("no edge takes the output of %s", a.name()))
		}
	}
	for _, f := range fs {
		if f.dead {
			out = append(out, fmt.Sprintf("no condition of the join [%s] holds", strings.Join(s.prog.Workflow.Edges[f.part].From, ", ")))
		}
	}
	out = append(out, s.Lacking()...)
	if len(out) == 0 {
		return "nothing reached END"
	}
	return strings.Join(out, "; ")
}

// Lacking names the joins that wait, and for whom.
func (s *State) Lacking() []string {
	have := map[int][]string{}
	for _, a := range s.agenda.tokens {
		for _, p := range s.routed(a).parts {
			if p.join && !a.offer.taken[p.edge][wholePart] {
				have[p.edge] = append(have[p.edge], a.Role)
			}
		}
	}
	var out []string
	for i, e := range s.prog.Workflow.Edges {
		if len(have[i]) == 0 {
			continue
		}
		var lacks []string
		for _, role := range e.From {
			if !slices.Contains(have[i], role) {
				lacks = append(lacks, role)
			}
		}
		if len(lacks) > 0 {
			out = append(out, fmt.Sprintf("the join [%s] → %s has %s and lacks %s", strings.Join(e.From, ", "),
				strings.Join(e.To, ", "), strings.Join(have[i], ", "), strings.Join(lacks, ", ")))
		}
	}
	return out
}

func (a *act) name() string {
	if a.N == startNode {
		return protocol.NodeStart
	}
	return fmt.Sprintf("%s#%d", a.Role, a.Num)
}

func (s *State) edgeName(i int) string {
	e := &s.prog.Workflow.Edges[i]
	return fmt.Sprintf("edge %d (%s → %s)", i, strings.Join(e.From, ", "), strings.Join(e.To, ", "))
}

// boundName says which bound a diverted firing met.
func (s *State) boundName(f firing) string {
	e := &s.prog.Workflow.Edges[f.edge]
	if e.Limit > 0 {
		return fmt.Sprintf("%s reached its limit of %d", s.edgeName(f.edge), e.Limit)
	}
	for _, to := range e.To {
		if r, ok := s.prog.Workflow.RoleNamed(to); ok && r.MaxVisits > 0 {
			return fmt.Sprintf("%s reached max_visits of %s, %d", s.edgeName(f.edge), to, r.MaxVisits)
		}
	}
	return s.edgeName(f.edge) + " reached a bound"
}
