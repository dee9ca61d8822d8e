package main

import (
	"cmp"
	"encoding/json"
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
part of it, for example roles.retry or edges. wf help language explains the same keys for people.`,
		Example: `  wf schema > .wf/schema.json

  # what may stand in a role, and in its retry
  wf schema role
  wf schema role.retry`,
		Args:        takes(0, 1),
		Annotations: map[string]string{formatsKey: "human json"},
		RunE: func(_ *cobra.Command, args []string) error {
			schema := lang.JSONSchema()
			if len(args) == 1 {
				part, err := schemaPart(schema, args[0])
				if err != nil {
					return cmp.Or(notAFile(args[0]), err)
				}
				return a.answerIndented(part)
			}
			_, err := fmt.Fprintf(a.Out, "%s\n", strings.TrimRight(string(schema), "\n"))
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
	return fail(protocol.ErrUsage, fmt.Sprintf("wf validate %s checks a workflow; wf schema role shows what may stand in a role", path),
		"%s is a file, and wf schema takes a part of the language, such as edges", path)
}

// answerIndented writes a JSON value for people and programs alike.
func (a *app) answerIndented(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	a.Answered = true
	return enc.Encode(v)
}

// schemaPart follows a dotted path of property names, through references, items and the
// values of maps.
func schemaPart(schema []byte, path string) (any, error) {
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	at := root
	for i, name := range strings.Split(path, ".") {
		next := property(root, at, name)
		if next == nil && i == 0 {
			next = definitionOf(root, name)
		}
		if next == nil {
			return nil, fail(protocol.ErrUsage, "wf schema shows the whole", "the schema has no %s at %q", name, path)
		}
		at = next
	}
	return at, nil
}

// property is the schema of a name below at, or nil.
func property(root, at map[string]any, name string) map[string]any {
	at = deref(root, at)
	if props, ok := at["properties"].(map[string]any); ok {
		if p, ok := props[name].(map[string]any); ok {
			return deref(root, p)
		}
	}
	for _, through := range []string{"items", "additionalProperties"} {
		if sub, ok := at[through].(map[string]any); ok {
			if p := property(root, sub, name); p != nil {
				return p
			}
		}
	}
	for _, choice := range []string{"oneOf", "anyOf", "allOf"} {
		list, _ := at[choice].([]any)
		for _, c := range list {
			if sub, ok := c.(map[string]any); ok {
				if p := property(root, sub, name); p != nil {
					return p
				}
			}
		}
	}
	return nil
}

func definitionOf(root map[string]any, name string) map[string]any {
	for _, key := range []string{"definitions", "$defs"} {
		if defs, ok := root[key].(map[string]any); ok {
			if d, ok := defs[name].(map[string]any); ok {
				return d
			}
		}
	}
	return nil
}

func deref(root, at map[string]any) map[string]any {
	for {
		ref, ok := at["$ref"].(string)
		if !ok {
			return at
		}
		target := definitionOf(root, ref[strings.LastIndex(ref, "/")+1:])
		if target == nil {
			return at
		}
		at = target
	}
}
