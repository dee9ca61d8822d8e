package api

// TraceOptions say what a trace holds.
type TraceOptions struct {
	// Prompts adds what was said: prompts, answers, arguments and results of tools, and the words of errors.
	Prompts bool
}
