package lang

import (
	"testing"

	"wf/protocol"
)

// TestEveryKeyIsReloaded holds for the example of each key: the definition, written as a file, is the same one.
func TestEveryKeyIsReloaded(t *testing.T) {
	for _, e := range Reference() {
		t.Run(e.Path, func(t *testing.T) {
			p := loadExample(t, inPlace(e, e.Example))
			again, ds := Reload(p.Workflow, func(l protocol.Link) (*protocol.Workflow, error) { return p.Children[l].Workflow, nil }, Options{})
			if again == nil {
				text, err := written(p.Workflow)
				t.Errorf("%v\n%s, %v", ds, text, err)
			}
		})
	}
}
