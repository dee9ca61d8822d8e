package cas

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"wf/protocol"
)

// TestThePublishedFormatHasEveryFieldOfEveryRecord holds docs/format.md against the types.
func TestThePublishedFormatHasEveryFieldOfEveryRecord(t *testing.T) {
	page, err := os.ReadFile("../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]any{
		"Chunks": protocol.Chunks{}, "Start": protocol.Start{}, "StepRecord": protocol.StepRecord{}, "Item": protocol.Item{},
		"Compaction": protocol.Compaction{}, "Result": protocol.Result{}, "Workflow": protocol.Workflow{}, "Input": protocol.Input{},
		"Limits": protocol.Limits{}, "Role": protocol.Role{}, "Edge": protocol.Edge{}, "NamedTemplate": protocol.NamedTemplate{},
		"MCPServer": protocol.MCPServer{}, "MCPValue": protocol.MCPValue{},
		"Choice": protocol.Choice{}, "Wait": protocol.Wait{}, "Retry": protocol.Retry{}, "CompactionSpec": protocol.CompactionSpec{},
		"Event": protocol.Event{}, "RunStarted": protocol.RunStarted{}, "ParentRun": protocol.ParentRun{},
		"StepStarted": protocol.StepStarted{}, "PromptSent": protocol.PromptSent{}, "Usage": protocol.Usage{},
		"StepCompleted": protocol.StepCompleted{}, "GitState": protocol.GitState{}, "Forked": protocol.Forked{},
		"Schedule": protocol.Schedule{}, "TaskSpec": protocol.TaskSpec{}, "MemorySpec": protocol.MemorySpec{}, "ChildCall": protocol.ChildCall{},
	}
	schema := regexp.MustCompile(`(?s)type (\w+) struct \{[^\n]*\n(.*?)\n\}`)
	line := regexp.MustCompile(`(?m)^  (\w+) (optional )?`)
	found := map[string]bool{}
	for _, m := range schema.FindAllStringSubmatch(string(page), -1) {
		name := m[1]
		v, ok := types[name]
		if !ok {
			t.Errorf("the page has a type %s that the test does not know", name)
			continue
		}
		found[name] = true
		documented := map[string]bool{} // → optional
		for _, f := range line.FindAllStringSubmatch(m[2], -1) {
			documented[f[1]] = f[2] != ""
		}
		for f := range fieldsOf(reflect.TypeOf(v)) {
			tag, rest, _ := strings.Cut(f.Tag.Get("cbor"), ",")
			optional, ok := documented[tag]
			if !ok {
				t.Errorf("%s.%s is not on the page", name, tag)
			}
			if optional != strings.Contains(rest, "omit") {
				t.Errorf("%s.%s: the page says optional %v, the type says %q", name, tag, optional, rest)
			}
			delete(documented, tag)
		}
		for extra := range documented {
			t.Errorf("%s.%s is on the page and not in the type", name, extra)
		}
	}
	for name := range types {
		if !found[name] {
			t.Errorf("the page lacks %s", name)
		}
	}
	for typ := range eventTypes {
		if !strings.Contains(string(page), "`"+typ+"`") {
			t.Errorf("the page lacks the event %s", typ)
		}
	}
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}
