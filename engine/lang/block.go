package lang

import (
	"fmt"

	"wf/cas"
	"wf/protocol"
)

// Block is the canonical definition, whose CID pins the behaviour of a run.
func (p *Program) Block() (cas.Block, error) { return encode(p.Workflow) }

// AllBlocks are the canonical definitions of the sub-workflows, each once and before what
// links it, and last that of the workflow itself.
func (p *Program) AllBlocks() ([]cas.Block, error) {
	var out []cas.Block
	seen := map[protocol.Link]bool{}
	var add func(*Program) error
	add = func(p *Program) error {
		for i := range p.Workflow.Roles {
			l := p.Workflow.Roles[i].Workflow
			if sub := p.Children[l]; sub != nil && !seen[l] {
				seen[l] = true
				if err := add(sub); err != nil {
					return err
				}
			}
		}
		b, err := p.Block()
		out = append(out, b)
		return err
	}
	if err := add(p); err != nil {
		return nil, err
	}
	return out, nil
}

func encode(w *protocol.Workflow) (cas.Block, error) {
	b, err := cas.Encode(w)
	if err != nil {
		return cas.Block{}, fmt.Errorf("definition of %s: %w", w.Name, err)
	}
	return b, nil
}
