package main

import (
	"context"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/protocol"
)

func newTrace(a *app) *cobra.Command {
	var o api.TraceOptions
	cmd := &cobra.Command{
		Use:   "trace RUN",
		Short: "Write what a run did as spans of OpenTelemetry",
		Long: `Write the spans of a run, with those of its sub-workflows, as OTLP/JSON: the run, its visits, the calls of models
and of tools. They are made of the journal, so any run can be traced, however old it is, and the same run always
gives the same ids. Each line is a request of OTLP/HTTP. The time in which a run waits is in no span. What was said
stays out unless you ask for it with --prompts. wf serve --otlp URL sends the spans of runs as they end.`,
		Example: `  wf trace -1 > trace.jsonl
  wf trace 7K3Q | head -1 | jq '.resourceSpans[].scopeSpans[].spans[].name'
  wf trace -1 | while read -r line; do printf %s "$line" | curl --json @- http://127.0.0.1:4318/v1/traces; done`,
		Args:        takes(1, 1, "a run"),
		Annotations: map[string]string{formatsKey: ""},
		RunE: a.ofRun(func(ctx context.Context, p *target, run protocol.RunID) error {
			return p.Trace(ctx, run, o, a.Out)
		}),
	}
	cmd.Flags().BoolVar(&o.Prompts, "prompts", false, "add prompts, answers, arguments and results of tools, and the words of errors")
	return cmd
}
