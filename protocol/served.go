package protocol

import (
	"path"
	"strings"

	"wf/protocol/lazy"
)

// WorkflowMax is the largest workflow file that is read, in bytes; a larger file is no workflow.
const WorkflowMax = 10 << 20

// workflowKey tells a workflow from other YAML: a key wf at the left edge.
var workflowKey = lazy.Regexp(`(?m)^["']?wf["']?\s*:`)

// IsWorkflow reports whether the text of a YAML file is meant to be a workflow, valid or not.
func IsWorkflow(source []byte) bool { return workflowKey().Match(source) }

// IsWorkflowName reports whether wf serve looks into a file of that name, in a directory that it serves, for a workflow.
func IsWorkflowName(name string) bool {
	ext := path.Ext(name)
	return (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(name, ".")
}
