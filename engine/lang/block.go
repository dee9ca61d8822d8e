package lang

import (
	"fmt"
	"maps"

	"wf/cas"
	"wf/protocol"
)

// Block is the canonical definition; its CID pins the behaviour of a run.
func (p *Program) Block() (cas.Block, error) {
	b, err := cas.Encode(p.Workflow)
	if err != nil {
		return cas.Block{}, fmt.Errorf("definition of %s: %w", p.Workflow.Name, err)
	}
	return b, nil
}

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

// Sources are the YAML texts of the sub-workflows, and of theirs, by Role.Workflow. Those are left
// out of which only the canonical form is known.
func (p *Program) Sources() map[protocol.Link][]byte {
	out := map[protocol.Link][]byte{}
	for l, sub := range p.Children {
		if sub.source != nil {
			out[l] = sub.source
		}
		maps.Copy(out, sub.Sources())
	}
	return out
}
