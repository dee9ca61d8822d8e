package trace

import (
	"encoding/json"
	"strconv"

	"wf/protocol"
)

// SchemaURL is the version of the semantic conventions that the attributes follow:
// https://github.com/open-telemetry/semantic-conventions/tree/v1.41.0/docs/gen-ai.
const SchemaURL = "https://opentelemetry.io/schemas/1.41.0"

// The JSON form of OTLP: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. Ids are in hex, integers of
// 64 bits are strings, enums are numbers.
type (
	traces struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
		SchemaURL  string       `json:"schemaUrl"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope     scope             `json:"scope"`
		Spans     []json.RawMessage `json:"spans"` // each a span
		SchemaURL string            `json:"schemaUrl"`
	}
	scope struct {
		Name string `json:"name"`
	}
	span struct {
		TraceID      string      `json:"traceId"`
		SpanID       string      `json:"spanId"`
		ParentSpanID string      `json:"parentSpanId,omitempty"`
		Name         string      `json:"name"`
		Kind         int         `json:"kind"`
		Start        nanos       `json:"startTimeUnixNano"`
		End          nanos       `json:"endTimeUnixNano"`
		Attributes   []attribute `json:"attributes,omitempty"`
		Links        []link      `json:"links,omitempty"`
		Status       status      `json:"status"`
	}
	link struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		Attributes []attribute `json:"attributes,omitempty"`
	}
	status struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string  `json:"stringValue,omitempty"`
		Int    *string  `json:"intValue,omitempty"`
		Double *float64 `json:"doubleValue,omitempty"`
		Bool   *bool    `json:"boolValue,omitempty"`
		Array  *array   `json:"arrayValue,omitempty"`
	}
	array struct {
		Values []value `json:"values"`
	}
)

// The kinds and the status that spans have.
const (
	internal    = 1
	client      = 3
	statusError = 2
)

// nanos is a time in unix µs, as OTLP has it: in ns.
type nanos int64

func (n nanos) MarshalJSON() ([]byte, error) {
	return []byte(`"` + strconv.FormatInt(int64(n)*1000, 10) + `"`), nil
}

func text(key, v string) attribute { return attribute{key, value{String: &v}} }

func number(key string, n int64) attribute {
	return attribute{key, value{Int: new(strconv.FormatInt(n, 10))}}
}

func seconds(key string, ms int64) attribute {
	return attribute{key, value{Double: new(float64(ms) / 1000)}}
}

func texts(key string, list ...string) attribute {
	a := &array{}
	for _, v := range list {
		a.Values = append(a.Values, value{String: &v})
	}
	return attribute{key, value{Array: a}}
}

// encoded is an attribute with a structure, as its JSON: conventions allow that where spans hold texts alone.
func encoded(key string, v any) (attribute, error) {
	b, err := protocol.CanonicalJSON(v)
	return text(key, string(b)), err
}

// batchSpans is how many spans a line holds at most, and batchBytes about how long it is: collectors refuse long
// requests, by default those over 20 MiB.
const (
	batchSpans = 512
	batchBytes = 4 << 20
)

// A batcher hands spans on as lines of TracesData, which are requests of OTLP/HTTP as well.
type batcher struct {
	to    func(line []byte) error
	spans []json.RawMessage
	bytes int
}

func (b *batcher) add(s span) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(b.spans) == batchSpans || len(b.spans) > 0 && b.bytes+len(data) > batchBytes {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.spans, b.bytes = append(b.spans, data), b.bytes+len(data)
	return nil
}

func (b *batcher) flush() error {
	if len(b.spans) == 0 {
		return nil
	}
	line, err := json.Marshal(traces{[]resourceSpans{{
		Resource:   resource{[]attribute{text("service.name", "wf")}},
		ScopeSpans: []scopeSpans{{scope{Name: "wf"}, b.spans, SchemaURL}},
		SchemaURL:  SchemaURL,
	}}})
	b.spans, b.bytes = b.spans[:0], 0
	if err != nil {
		return err
	}
	return b.to(append(line, '\n'))
}
