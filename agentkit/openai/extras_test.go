package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/agentkit/modeltest"
	"wf/agentkit/openai"
	"wf/protocol"
)

// sent is the body of the one request that a call makes.
func sent(t *testing.T, c openai.Config, r model.Request, messages []llms.MessageContent) string {
	t.Helper()
	s := modeltest.Start(t, modeltest.Text("hi"))
	c.BaseURL = s.URL
	m, err := openai.New("openai/test", "test", c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.GenerateContent(model.WithRequest(t.Context(), r), messages); err != nil {
		t.Fatal(err)
	}
	return string(s.Requests()[0].Body)
}

func TestMarksStandAtSystemAndEveryTurnOfTheUser(t *testing.T) {
	conversation := append(hello[:2:2],
		llms.TextParts(llms.ChatMessageTypeAI, "Hi."), llms.TextParts(llms.ChatMessageTypeHuman, "On."),
		llms.TextParts(llms.ChatMessageTypeAI, "Bad."), llms.TextParts(llms.ChatMessageTypeHuman, "That does not fit."))
	body := sent(t, openai.Config{Marks: true}, model.Request{Prompt: 4}, conversation)
	const mark = `"prompt_cache_breakpoint":{"mode":"explicit"}`
	want := `"messages":[{"role":"system","content":[{"type":"text","text":"Be <brief> & kind.",` + mark + `}]},` +
		`{"role":"user","content":[{"type":"text","text":"Hello",` + mark + `}]},{"role":"assistant","content":"Hi."},` +
		`{"role":"user","content":[{"type":"text","text":"On.",` + mark + `}]},{"role":"assistant","content":"Bad."},` +
		`{"role":"user","content":"That does not fit."}]`
	if !strings.Contains(body, want) {
		t.Errorf("sent %s", body)
	}
	if body := sent(t, openai.Config{}, model.Request{Prompt: 4}, conversation); strings.Contains(body, "breakpoint") {
		t.Errorf("a server that takes none was sent %s", body)
	}
}

func TestK16SpeculativeOptionsReachALlamaServerAlone(t *testing.T) {
	r := model.Request{Params: protocol.JSON(`{"id_slot":1,"seed":3,"speculative":{"n_max":16,"p_min":"0.75"}}`)}
	if body := sent(t, openai.Config{Llama: true}, r, hello); !strings.Contains(body, `"seed":3,"id_slot":1,"speculative.n_max":16,"speculative.p_min":0.75,"stream"`) {
		t.Errorf("a llama-server was sent %s", body)
	}
	if body := sent(t, openai.Config{}, r, hello); strings.Contains(body, "speculative") || strings.Contains(body, "id_slot") || !strings.Contains(body, `"seed":3`) {
		t.Errorf("another server was sent %s", body)
	}
}

// slotServer is what a llama-server does with slots.
type slotServer struct {
	mu     sync.Mutex
	saved  map[string]bool
	did    []string
	status int // of slots, 0 for what is right
}

func (s *slotServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if strings.HasPrefix(r.URL.Path, "/slots/") {
		var file struct{ Filename string }
		_ = json.Unmarshal(body, &file)
		action := r.URL.Query().Get("action")
		if s.status != 0 {
			s.did = append(s.did, fmt.Sprint(s.status))
			w.WriteHeader(s.status)
			return
		}
		if action == "restore" && !s.saved[file.Filename] {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.saved[file.Filename] = true
		s.did = append(s.did, action+" "+strings.TrimPrefix(r.URL.Path, "/slots/"))
		return
	}
	var request struct {
		Slot *int `json:"id_slot"`
	}
	_ = json.Unmarshal(body, &request)
	if request.Slot == nil {
		s.did = append(s.did, "ask")
	} else {
		s.did = append(s.did, fmt.Sprintf("ask %d", *request.Slot))
	}
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, "data: "+modeltest.Finish("stop")+"\n\ndata: [DONE]\n\n")
}

func TestK13SlotsAreSavedAndRestoredByPrefix(t *testing.T) {
	server := &slotServer{saved: map[string]bool{}}
	h := httptest.NewServer(server)
	defer h.Close()
	open := func() llms.Model {
		m, err := openai.New("local/test", "test", openai.Config{BaseURL: h.URL + "/v1", Llama: true, Slots: 2})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	ask := func(m llms.Model, texts ...string) {
		t.Helper()
		var messages []llms.MessageContent
		for i, text := range texts {
			role := llms.ChatMessageTypeHuman
			if i%2 == 1 {
				role = llms.ChatMessageTypeAI
			}
			messages = append(messages, llms.TextParts(role, text))
		}
		if _, err := m.GenerateContent(model.WithRequest(context.Background(), model.Request{Prompt: len(messages)}), messages); err != nil {
			t.Fatal(err)
		}
	}
	did := func(what string, want ...string) {
		t.Helper()
		server.mu.Lock()
		defer server.mu.Unlock()
		if d := cmp.Diff(want, server.did); d != "" {
			t.Errorf("%s: %s", what, d)
		}
		server.did = nil
	}
	m := open()
	ask(m, "a")
	did("a new prompt", "ask 0", "save 0")
	ask(m, "b")
	did("another one", "ask 1", "save 1")
	ask(m, "a", "A", "a2")
	did("a conversation goes on in its slot", "ask 0", "save 0")
	ask(m, "a", "A", "a2")
	did("the same again needs no saving", "ask 0")
	ask(m, "c")
	did("the slot used least recently gives way", "ask 1", "save 1")
	ask(m, "b", "B", "b2")
	did("what was saved is restored", "restore 0", "ask 0", "save 0")

	m = open() // another process, or the server was restarted
	ask(m, "c", "C", "c2")
	did("a prefix is found by its name", "restore 0", "ask 0", "save 0")

	server.status = http.StatusNotImplemented
	ask(m, "d")
	did("a server without slots is not asked again", "501", "ask 1", "501")
	ask(m, "e")
	did("and chooses for itself", "ask")
}

func TestK13LlamaServerRestoresASlot(t *testing.T) {
	dir := t.TempDir()
	start := func(t *testing.T) llms.Model {
		base := modeltest.Llama(t, "--slot-save-path", dir+string(filepath.Separator))
		m, err := openai.New("local/tiny", "tiny", openai.Config{BaseURL: base, Llama: true, Slots: 2})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	long := strings.Repeat("All work and no play. ", 60)
	ask := func(t *testing.T, m llms.Model, messages ...llms.MessageContent) (answer string, input, cached int64) {
		ctx := model.WithRequest(t.Context(), model.Request{Prompt: len(messages), Params: protocol.JSON(`{"max_tokens":8,"temperature":"0.0"}`)})
		r, err := m.GenerateContent(ctx, messages)
		if err != nil {
			t.Fatal(err)
		}
		u := model.UsageOf(r)
		return r.Choices[0].Content, *u.Input, *u.Cached
	}
	first := llms.TextParts(llms.ChatMessageTypeHuman, long)
	var answer string
	var input int64
	t.Run("one server", func(t *testing.T) { answer, input, _ = ask(t, start(t), first) })
	t.Run("the next one", func(t *testing.T) {
		_, now, cached := ask(t, start(t), first, llms.TextParts(llms.ChatMessageTypeAI, answer), llms.TextParts(llms.ChatMessageTypeHuman, "And then?"))
		t.Logf("prompt %d, then %d of which %d cached", input, now, cached)
		if cached < input-1 {
			t.Errorf("a new server read %d of %d tokens from the slot", cached, input)
		}
	})
}
