package lang

// Scope is what an expression sees. All values are JSON values: nil, bool, int, float64,
// string, []any, map[string]any. The zero Scope is that of START.
type Scope struct {
	// Inputs are the inputs of the run, defaults applied.
	Inputs map[string]any
	// Output is the output of the edge's source, text and body included: an object, or after
	// a fan-out the list of them in item order; nil for a join and for START. In the templates
	// of a role it is that of the edge that activated the visit; in the outputs of the
	// workflow that of the first step, in parent order, that reached END.
	Output any
	// Outputs are the outputs by role, for joins.
	Outputs map[string]any
	// Steps are the nearest causal ancestors by role; a missing one is null.
	Steps map[string]*Step
	// Item and Index are the element of a fan-out and its place.
	Item  any
	Index int
	// Verdict is how the run ends, in the templates of always roles: status, code, message, outputs.
	Verdict map[string]any
	// EdgeVisit counts, from 1, how often this branch takes the edge, this time included.
	EdgeVisit int
}

// Step is an ancestor, as steps.<role> shows it.
type Step struct {
	Output   any // as Scope.Output
	Text     string
	Status   string // ok, failed or skipped
	ExitCode *int   // of commands, else nil
	Visit    int
	Files    *Files // what it keeps, where an expression looks at that

	seen map[string]any // value, made once: many expressions look at a step
}

// FilesMax is how many of the files that a step keeps an expression sees.
const FilesMax = 1_000

// The fields of a step that tell of its artifacts.
const (
	filesField      = "artifacts"
	filesCountField = "artifacts_count"
)

// Files are what a step keeps: the first FilesMax in the order of their paths, each with path, size, mode and hash, and how
// many there are in all. What was left out of the artifacts is none of them.
type Files struct {
	List  []any
	Count int
}

// value is the step as expressions see it; its fields do not change any more.
func (st *Step) value() map[string]any {
	if st.seen == nil {
		st.seen = map[string]any{"output": st.Output, "text": st.Text, "status": st.Status, "visit": st.Visit, "exit_code": nil}
		if st.ExitCode != nil {
			st.seen["exit_code"] = *st.ExitCode
		}
		if st.Files != nil {
			st.seen[filesField], st.seen[filesCountField] = st.Files.List, st.Files.Count
		}
	}
	return st.seen
}

func (p *Program) env(s *Scope) *env {
	steps := make(map[string]any, len(s.Steps))
	for role, st := range s.Steps {
		if st != nil {
			steps[role] = st.value()
		}
	}
	return &env{Inputs: orEmpty(s.Inputs), Output: s.Output, Outputs: orEmpty(s.Outputs), Steps: steps,
		Item: s.Item, Index: s.Index, Edge: edgeEnv{s.EdgeVisit}, Run: runOf(s.Verdict), Budget: newBudget()}
}

// runOf is the run as always roles see it.
func runOf(verdict map[string]any) any {
	if verdict == nil {
		return nil
	}
	return map[string]any{"verdict": verdict}
}

// noValues stands for a map that is not there; expressions change none.
var noValues = map[string]any{}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return noValues
	}
	return m
}
