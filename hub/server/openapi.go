package server

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"go.yaml.in/yaml/v4"

	"wf/hub/reply"
)

//go:embed openapi.yaml
var openapiYAML []byte

// OpenAPI is the description of the API: OpenAPI 3.1 as JSON.
var OpenAPI = sync.OnceValues(func() ([]byte, error) {
	var doc any
	if err := yaml.Unmarshal(openapiYAML, &doc); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	return json.Marshal(doc)
})

func (s *Server) openapi(c *call) (any, error) {
	describe := OpenAPI
	if s.Describe != nil {
		describe = s.Describe
	}
	b, err := describe()
	if err == nil {
		reply.Bytes(c.w, http.StatusOK, "application/json", b)
	}
	return nil, err
}
