package lang

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"wf/engine/yaml"
	"wf/protocol"
	"wf/protocol/lazy"
)

// paramKinds are the params that wf itself reads for some provider, and those that are numbers to all: what a value must
// be, and whether a node is that. All others are the provider's business.
var paramKinds = func() map[string]paramKind {
	number := paramKind{"a number", func(n *yaml.Node) bool {
		return n.Type == yaml.Int || n.Type == yaml.Float || n.Type == yaml.String && measure().MatchString(n.Value)
	}}
	count := paramKind{"an integer, at least 1", func(n *yaml.Node) bool {
		i, err := n.Int()
		return err == nil && i > 0 && n.Type == yaml.Int
	}}
	out := map[string]paramKind{
		"max_tokens": count, "max_completion_tokens": count,
		"cache_ttl":   {`"5m" or "1h"`, func(n *yaml.Node) bool { return n.Value == "5m" || n.Value == "1h" }},
		"speculative": {"a mapping", func(n *yaml.Node) bool { return n.Kind == yaml.Mapping }},
		"tool_choice": {"auto, none, required, the name of a tool, or a mapping", func(n *yaml.Node) bool {
			return n.Kind == yaml.Mapping || n.Kind == yaml.Scalar && n.Type == yaml.String
		}},
		"betas": {"a list of texts", func(n *yaml.Node) bool {
			return n.Kind == yaml.Sequence && !slices.ContainsFunc(n.Items, func(it *yaml.Node) bool { return it.Kind != yaml.Scalar || it.Type != yaml.String })
		}},
	}
	for _, name := range protocol.MeasureParams {
		out[name] = number
	}
	return out
}()

// measure is a number in quotes that is sent as one.
var measure = lazy.Regexp(`^-?[0-9]+(\.[0-9]+)?$`)

type paramKind struct {
	want string
	fits func(*yaml.Node) bool
}

// params is the canonical JSON of model parameters, and the pointers of its texts that look like decimals. Decimals
// become strings: no float enters a definition.
func (l *loader) params(n *yaml.Node) (string, []string) {
	if !l.good(n) || n.Kind != yaml.Mapping || len(n.Pairs) == 0 {
		return "", nil
	}
	for _, p := range n.Pairs {
		l.param(p)
	}
	v, err := n.JSON()
	if err != nil {
		return "", nil // reported by the grammar
	}
	var texts []string
	v = protocol.MapParams(v, func(at string, v any) any {
		switch v := v.(type) {
		case float64:
			if v == math.Trunc(v) && math.Abs(v) <= protocol.MaxSafeInt {
				return int64(v) // 1.0 is written 1: a string without a point would be text
			}
			if math.Abs(v) > protocol.MaxSafeInt {
				l.wrong(n, fmt.Sprintf("params%s: %v lies beyond ±(2^53−1)", strings.ReplaceAll(at, "/", "."), v), "write it in quotes, if it is a text")
			}
			return strconv.FormatFloat(v, 'f', -1, 64)
		case string:
			if protocol.DecimalParam(v, at, nil) && !isMeasure(at) {
				texts = append(texts, at)
			}
		}
		return v
	})
	b, err := protocol.CanonicalJSON(v)
	if err != nil {
		l.report(n, Diagnostic{Code: "WF002", Message: fmt.Sprintf("params: %v", err)})
		return "", nil
	}
	slices.Sort(texts)
	return string(b), texts
}

// param refuses one that wf writes itself, and one that it could not read when the model is asked.
func (l *loader) param(p yaml.Pair) {
	name := p.Key.Value
	if key, reserved := protocol.ReservedParams[name]; reserved {
		hint := "remove it"
		if key != "" {
			hint = "say it by " + key + ", a key of the role"
		}
		l.report(p.Key, Diagnostic{Code: "WF002", Message: fmt.Sprintf("params.%s is written by wf itself", name), Hint: hint})
	} else if kind, known := paramKinds[name]; known && l.good(p.Value) && !kind.fits(p.Value) {
		l.wrong(p.Value, fmt.Sprintf("params.%s wants %s, got %s", name, kind.want, cmp.Or(p.Value.Value, p.Value.Describe())), "")
	}
}

// isMeasure reports whether a pointer is that of a param which is always a number.
func isMeasure(at string) bool {
	return slices.Contains(protocol.MeasureParams, strings.TrimPrefix(at, "/"))
}
