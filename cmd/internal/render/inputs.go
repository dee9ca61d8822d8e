package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"wf/protocol"
)

// ShowInputs writes what a workflow takes.
func (p *Printer) ShowInputs(w *protocol.Workflow) error {
	inputs := w.Inputs
	if p.AsJSON() {
		return p.Answer(map[string]any{"schema": "wf.inputs/v1", "workflow": w.Name, "inputs": inputs})
	}
	if len(inputs) == 0 {
		_, err := fmt.Fprintf(p.Out, "%s takes no inputs\n", w.Name)
		return err
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		in := inputs[name]
		need := "optional"
		switch {
		case in.Required:
			need = "required"
		case in.Default != "":
			need = "default " + in.Default
		}
		rows = append(rows, []string{"-i " + name + "=…", cmp.Or(in.Type, "any"), need, in.Description})
	}
	return Table(p.Out, rows)
}
