package relay

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v4"

	"wf/hub/server"
)

//go:embed openapi.yaml
var openapiYAML []byte

// OpenAPI is the description of the API of a hub: that of a worker with what a hub adds.
// OpenAPI 3.1 as JSON.
var OpenAPI = sync.OnceValues(func() ([]byte, error) {
	b, err := server.OpenAPI()
	if err != nil {
		return nil, err
	}
	var doc, more map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(openapiYAML, &more); err != nil {
		return nil, fmt.Errorf("openapi.yaml of the hub: %w", err)
	}
	overlay(doc, more)
	return json.Marshal(doc)
})

// overlay adds what more has, at any depth.
func overlay(doc, more map[string]any) {
	for key, value := range more {
		if into, ok := doc[key].(map[string]any); ok {
			if from, ok := value.(map[string]any); ok {
				overlay(into, from)
				continue
			}
		}
		doc[key] = value
	}
}
