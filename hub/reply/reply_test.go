package reply_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"wf/hub/reply"
	"wf/protocol"
)

// What is wrong with a body is said in the words of JSON, never in those of the language that
// this is written in.
func TestWhatIsWrongWithABody(t *testing.T) {
	type body struct {
		Name   string                     `json:"name"`
		Inputs map[string]json.RawMessage `json:"inputs"`
		Tags   []string                   `json:"tags"`
		After  bool                       `json:"after"`
	}
	for _, test := range []struct{ text, want string }{
		{``, "the body is empty, a JSON object is wanted"},
		{`{"name":`, "the body breaks off in the middle of its JSON"},
		{`{name}`, "the body is no JSON at byte 2: invalid character 'n' looking for beginning of object key string"},
		{`[]`, "the body holds a JSON array where an object is wanted"},
		{`{"name":1}`, "name: a JSON number is given, a string is wanted"},
		{`{"inputs":[]}`, "inputs: a JSON array is given, an object is wanted"},
		{`{"tags":"a"}`, "tags: a JSON string is given, an array is wanted"},
		{`{"after":"yes"}`, "after: a JSON string is given, true or false is wanted"},
		{`{"nmae":""}`, `body: unknown field "nmae"`},
		{`{"name":"` + strings.Repeat("x", 200) + `"}`, "the body has more than 100 bytes"},
	} {
		d := json.NewDecoder(http.MaxBytesReader(httptest.NewRecorder(), io.NopCloser(strings.NewReader(test.text)), 100))
		d.DisallowUnknownFields()
		err := reply.BodyError(d.Decode(&body{}))
		if err.Error() != test.want || protocol.HintOf(err) == "" {
			t.Errorf("%.40s: %v, want %s", test.text, err, test.want)
		}
	}
}
