package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"wf/engine/lang"
	"wf/protocol"
)

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [PATH]",
		Short: "Write the JSON Schema of the language",
		Long: `Write the JSON Schema (draft-07) of workflow files, for editors and other checkers. A path picks a
part of it, for example roles.retry or edges. wf help language explains the same keys for people. The path suite is
the schema of the suites of wf eval, and suite.cases a part of that.`,
		Example: `  wf schema > .wf/schema.json

  # what may stand in a role, and in its retry
  wf schema role
  wf schema role.retry

  # suites of wf eval
  wf schema suite > .wf/suite.json`,
		Args:        takes(0, 1),
		Annotations: map[string]string{formatsKey: "human json"},
		RunE: func(_ *cobra.Command, args []string) error {
			whole := lang.JSONSchema
			if len(args) == 1 && args[0] == "suite" {
				whole = lang.SuiteSchema
			} else if len(args) == 1 {
				part, err := lang.SchemaPart(args[0])
				if err != nil {
					return cmp.Or(notAFile(args[0]), err)
				}
				return a.Answer(part)
			}
			_, err := fmt.Fprintf(a.Out, "%s\n", strings.TrimRight(string(whole()), "\n"))
			return err
		},
	}
}

// notAFile refuses what was meant as a workflow.
func notAFile(path string) error {
	_, err := os.Stat(path)
	if err != nil && !strings.ContainsAny(path, `/\`) && !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".yml") {
		return nil
	}
	return protocol.ErrUsage.With(fmt.Sprintf("wf validate %s checks a workflow; wf schema role shows what may stand in a role", protocol.ShellWord(path)),
		"%s is a file, and wf schema takes a part of the language, such as edges", path)
}
