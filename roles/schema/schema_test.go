package schema_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/roles/schema"
)

// suite is a directory of the official cases, which the module of another validator brings along.
func suite(t *testing.T, draft string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "jsonschema", "testdata", draft, "*.json"))
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files of %s: %v", len(files), draft, err)
	}
	return files
}

// A group of the official cases is a schema and values, each with the verdict that is right.
type group struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// in is the schema of the group, saying the draft that it is of.
func (g group) in(t *testing.T, draft string) string {
	t.Helper()
	var m map[string]json.RawMessage
	if draft == "" || json.Unmarshal(g.Schema, &m) != nil || m["$schema"] != nil {
		return string(g.Schema) // the newest, true or false
	}
	m["$schema"] = json.RawMessage(`"` + draft + `"`)
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Of the official cases all hold whose schema stands alone, and another validator gives the same
// reasons at the same places.
func TestTheOfficialCasesHold(t *testing.T) {
	held := 0
	for draft, address := range map[string]string{"draft2020-12": "", "draft7": "http://json-schema.org/draft-07/schema#"} {
		for _, file := range suite(t, draft) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var groups []group
			if err := json.Unmarshal(b, &groups); err != nil {
				t.Fatal(err)
			}
			for _, g := range groups {
				s, err := schema.Compile(g.in(t, address), false)
				if err != nil {
					if !strings.Contains(err.Error(), "a schema may refer to its own parts alone") {
						t.Errorf("%s: %s: %v", file, g.Description, err)
					}
					continue
				}
				other := oracle(t, g.in(t, address), false)
				for _, c := range g.Tests {
					held++
					found := s.Validate(c.Data)
					if (len(found) == 0) != c.Valid {
						t.Errorf("%s: %s: %s: valid is %v, but %v", file, g.Description, c.Description, c.Valid, found)
					}
					if diff := cmp.Diff(other(c.Data), comparable(found)); diff != "" {
						t.Errorf("%s: %s: %s (-other +ours):\n%s", file, g.Description, c.Description, diff)
					}
				}
			}
		}
	}
	if held < 1900 {
		t.Errorf("only %d cases", held)
	}
}

// Of several faults that no schema may have, the one by the first of its keys is reported, each time.
func TestOfSeveralFaultsTheSameIsReported(t *testing.T) {
	for range 20 {
		_, err := schema.Compile(`{"properties": {"b": {"$ref": "#/no/b"}, "a": {"$ref": "#/no/a"}, "c": {"$ref": "#/no/c"}}}`, false)
		if err == nil || !strings.Contains(err.Error(), "/no/a") {
			t.Fatalf("the first fault is that of a: %v", err)
		}
		_, err = schema.Compile(`{"$defs": {"y": {"$id": "%zz/y"}, "x": {"$id": "%zz/x"}, "z": {"$id": "%zz/z"}}}`, false)
		if err == nil || !strings.Contains(err.Error(), "/x") {
			t.Fatalf("the first fault is that of x: %v", err)
		}
	}
}
