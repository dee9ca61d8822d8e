package server

import (
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"wf/hub/reply"
)

// What go run ./hub/server/schemas makes of openapi.yaml: a sixth of its bytes.
//
//go:embed openapi.yaml.gz
var openapiYAML string

// OpenAPI is the description of the API: OpenAPI 3.1 as JSON.
var OpenAPI = sync.OnceValues(func() ([]byte, error) {
	var doc any
	text, err := unpacked(openapiYAML)
	if err == nil {
		err = yaml.Unmarshal(text, &doc)
	}
	if err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	return json.Marshal(doc)
})

func unpacked(packed string) ([]byte, error) {
	r, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

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
