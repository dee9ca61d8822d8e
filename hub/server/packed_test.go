package server

import (
	"bytes"
	"os"
	"testing"
)

// The description that the program holds is that of the file.
func TestTheProgramHoldsTheDescription(t *testing.T) {
	want, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := unpacked(openapiYAML); err != nil || !bytes.Equal(got, want) {
		t.Errorf("openapi.yaml.gz is not what openapi.yaml is (%v): go run ./hub/server/schemas, or make update", err)
	}
}
