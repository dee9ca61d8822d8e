package api

// ExportOptions say what an archive holds beside what a run concluded and what happened in it.
type ExportOptions struct {
	Files bool // the files of the workspace that were recorded
}

// TraceOptions say what a trace holds.
type TraceOptions struct {
	// Prompts adds what was said: prompts, answers, arguments and results of tools, and the words of errors.
	Prompts bool
}
