package embed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/embed"
	"wf/agentkit/model"
	"wf/agentkit/modeltest"
	"wf/protocol"
)

// server answers POST /v1/embeddings by what answer says of a request.
func server(t *testing.T, answer func(n int, input []string) (status int, body string)) (*embed.OpenAI, *atomic.Int32) {
	t.Helper()
	var calls atomic.Int32
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Model  string   `json:"model"`
			Input  []string `json:"input"`
			Format string   `json:"encoding_format"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.URL.Path != "/v1/embeddings" || req.Model != "nomic" || req.Format != "float" {
			t.Errorf("asked %s %+v %v", r.URL.Path, req, err)
		}
		status, body := answer(int(calls.Add(1)), req.Input)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(h.Close)
	o, err := embed.NewOpenAI("local/nomic", "nomic", embed.Config{BaseURL: h.URL + "/v1", Backoff: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	return o, &calls
}

// lengths is an answer whose vectors tell the lengths of the texts, in reverse order.
func lengths(input []string) string {
	var data []string
	for i := len(input) - 1; i >= 0; i-- {
		data = append(data, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[%d,1]}`, i, len(input[i])))
	}
	return `{"object":"list","data":[` + strings.Join(data, ",") + `]}`
}

func TestVectorsAreTakenByTheirIndexFromSeveralRequests(t *testing.T) {
	most := 0
	o, calls := server(t, func(_ int, input []string) (int, string) {
		most = max(most, len(input))
		return 200, lengths(input)
	})
	texts := make([]string, 150)
	for i := range texts {
		texts[i] = strings.Repeat("x\n", i+1) // new lines are the text's own
	}
	vectors, err := o.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		if v[0] != float32(2*(i+1)) {
			t.Fatalf("text %d has the vector %v", i, v)
		}
	}
	if calls.Load() != 3 || most != 64 {
		t.Errorf("%d requests of up to %d texts", calls.Load(), most)
	}
}

// The file was recorded from the official client library.
func TestAWholeRequestIsByteForByteTheRecordedOne(t *testing.T) {
	want, err := os.ReadFile("testdata/request.http")
	if err != nil {
		t.Fatal(err)
	}
	s := modeltest.Start(t, modeltest.Answer{Body: `{"data":[{"embedding":[1]},{"embedding":[2]}]}`})
	o, err := embed.NewOpenAI("openai/nomic", "nomic", embed.Config{BaseURL: s.URL, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.EmbedDocuments(t.Context(), []string{"a <b> & c", "世界\u2028"}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), s.Requests()[0].Text()); d != "" {
		t.Error(d)
	}
}

func TestABaseURLMayEndInASlashOrAQuery(t *testing.T) {
	for given, want := range map[string]string{
		"":              "/embeddings",
		"/":             "/embeddings",
		"/v1":           "/v1/embeddings",
		"/v1/":          "/v1/embeddings",
		"/a/v1?b=c#d":   "/a/v1/embeddings",
		"/to/http://h/": "/to/http://h/embeddings",
		"/to/http://h":  "/to/http://h/embeddings",
		"/a%2Fb/v1":     "/a%2Fb/v1/embeddings",
	} {
		asked := ""
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.RequestURI
			fmt.Fprint(w, `{"data":[{"embedding":[1]}]}`)
		}))
		o, err := embed.NewOpenAI("openai/nomic", "nomic", embed.Config{BaseURL: h.URL + given})
		if err != nil {
			t.Fatal(err)
		}
		_, err = o.EmbedQuery(t.Context(), "a")
		h.Close()
		if err != nil || asked != want {
			t.Errorf("%q asks %q, want %q (%v)", given, asked, want, err)
		}
	}
}

func TestAServerThatFailsForAMomentIsAskedAgain(t *testing.T) {
	o, calls := server(t, func(n int, input []string) (int, string) {
		if n < 3 {
			return []int{429, 503}[n-1], `{"error":{"message":"busy"}}`
		}
		return 200, lengths(input)
	})
	if v, err := o.EmbedQuery(t.Context(), "four"); err != nil || v[0] != 4 || calls.Load() != 3 {
		t.Errorf("%v %v after %d calls", v, err, calls.Load())
	}
}

func TestATooLongTextIsCutUntilItFits(t *testing.T) {
	o, _ := server(t, func(_ int, input []string) (int, string) {
		for _, text := range input {
			if len(text) > 2_000 {
				return 500, `{"error":{"code":500,"message":"input is too large to process. increase the physical batch size","type":"server_error"}}`
			}
		}
		return 200, lengths(input)
	})
	vectors, err := o.EmbedDocuments(t.Context(), []string{"ab", strings.Repeat("é", 500_000), "cde"})
	if err != nil || vectors[0][0] != 2 || vectors[1][0] != 1_536 || vectors[2][0] != 3 {
		t.Errorf("%v %v", vectors, err)
	}
}

func TestWhatCannotBeUsedIsTold(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
		status, calls    int
		class            model.Class
	}{
		{"no such model", `{"error":{"message":"model not found"}}`, "model not found", 404, 1, model.Unavailable},
		{"no key", `{"error":"no key"}`, "no key", 401, 1, model.Unavailable},
		{"busy for ever", `slow down`, "slow down", 503, 3, model.ServerError},
		{"no JSON", `hello`, "no JSON", 200, 1, model.Invalid},
		{"a web page", `<html>`, "web page", 200, 1, model.Unavailable},
		{"too few", `{"data":[]}`, "0 vectors came for 2 texts", 200, 1, model.Invalid},
		{"an error with status 200", `{"error":{"message":"loading"}}`, "loading", 200, 1, model.Invalid},
		{"one index twice", `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`, "index 0", 200, 1, model.Invalid},
		{"two lengths", `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`, "has 2", 200, 1, model.Invalid},
		{"no numbers", `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":["x"]}]}`, "no list of numbers", 200, 1, model.Invalid},
		{"nothing", `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`, "empty", 200, 1, model.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, calls := server(t, func(int, []string) (int, string) { return c.status, c.body })
			_, err := o.EmbedDocuments(t.Context(), []string{"a", "b"})
			var failed *model.Error
			if !errors.As(err, &failed) || failed.Class != c.class || !strings.Contains(err.Error(), c.want) || int(calls.Load()) != c.calls {
				t.Errorf("%v after %d calls", err, calls.Load())
			}
			if c.class != model.Invalid && !errors.Is(err, protocol.ErrModel) {
				t.Errorf("it has no code: %v", err)
			}
		})
	}
}

func TestBase64IsReadToo(t *testing.T) {
	o, _ := server(t, func(int, []string) (int, string) {
		return 200, `{"data":[{"index":0,"embedding":"AACAPwAAAMA="}]}` // 1, −2
	})
	if v, err := o.EmbedQuery(t.Context(), "x"); err != nil || len(v) != 2 || v[0] != 1 || v[1] != -2 {
		t.Errorf("%v %v", v, err)
	}
}

func TestAnEndpointThatIsDownIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + l.Addr().String() + "/v1"
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o, err := embed.NewOpenAI("local/nomic", "nomic", embed.Config{BaseURL: base})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.EmbedQuery(t.Context(), "x")
	if !errors.Is(err, protocol.ErrModel) || !strings.Contains(err.Error(), base) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.EmbedQuery(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAnEmptyTextHasNoVector(t *testing.T) {
	o, calls := server(t, func(_ int, input []string) (int, string) { return 200, lengths(input) })
	if _, err := o.EmbedDocuments(t.Context(), []string{"a", " "}); err == nil || calls.Load() != 0 {
		t.Error(err, calls.Load())
	}
}

func TestNamesOfModels(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("OPENAI_API_KEY", "")
	for name, want := range map[string]string{"": "", embed.LexicalName: "", "openai/x": "OPENAI_BASE_URL", "nobody/x": "no provider", "lexical/other": "no provider"} {
		_, err := embed.Open(name)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !errors.Is(err, protocol.ErrModel)) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
