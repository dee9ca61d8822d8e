package lang

import "fmt"

// System renders the prompt of an agent role: inputs are all it may refer to, so it is the
// same for every visit of a run.
func (p *Program) System(role string, inputs map[string]any) (string, error) {
	c := p.roles[role]
	if c == nil {
		return "", fmt.Errorf("the workflow has no role %q", role)
	}
	text, err := c.prompt.text(&env{Inputs: orEmpty(inputs), Budget: newBudget()})
	if err != nil {
		return "", fmt.Errorf("role %s: prompt: %w", role, err)
	}
	return text, nil
}
