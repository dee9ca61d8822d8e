package agentkit

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tmc/langchaingo/llms"

	"wf/protocol"
)

// callOptions are the tools, and those params that langchaingo has a word for: the models of
// this module read all of them from the request.
func callOptions(tools []protocol.Tool, params string) ([]llms.CallOption, error) {
	var options []llms.CallOption
	if len(tools) > 0 {
		list := make([]llms.Tool, len(tools))
		for i, t := range tools {
			list[i] = llms.Tool{Type: "function", Function: &llms.FunctionDefinition{
				Name: t.Name, Description: t.Description, Parameters: t.Parameters,
			}}
		}
		options = append(options, llms.WithTools(list))
	}
	if params == "" {
		return options, nil
	}
	var known struct {
		Temperature decimal  `json:"temperature"`
		TopP        decimal  `json:"top_p"`
		TopK        int      `json:"top_k"`
		MaxTokens   int      `json:"max_tokens"`
		Seed        int      `json:"seed"`
		Stop        []string `json:"stop"`
	}
	if err := json.Unmarshal([]byte(params), &known); err != nil {
		return nil, fmt.Errorf("params: %w", err)
	}
	return append(options, func(o *llms.CallOptions) {
		o.Temperature, o.TopP, o.TopK = float64(known.Temperature), float64(known.TopP), known.TopK
		o.MaxTokens, o.Seed, o.StopWords = known.MaxTokens, known.Seed, known.Stop
	}), nil
}

// decimal is a number that may be written as a string.
type decimal float64

func (d *decimal) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		s = string(b)
	}
	f, err := strconv.ParseFloat(s, 64)
	*d = decimal(f)
	return err
}
