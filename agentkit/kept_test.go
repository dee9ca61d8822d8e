package agentkit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/anthropic"
	"wf/agentkit/modeltest"
	"wf/protocol"
)

// strict is a server of Anthropic's wire whose models bind a thought to all that stands before it, as the documentation says:
// https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks
type strict struct {
	*modeltest.Server
	mu      sync.Mutex
	refused []string
}

// problems are why it refused requests.
func (s *strict) problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// wireBody is what of a request a thought is bound to.
type wireBody struct {
	Tools    any           `json:"tools"`
	System   any           `json:"system"`
	Messages []wireMessage `json:"messages"`
}

type wireMessage struct {
	Role    string           `json:"role"`
	Content []map[string]any `json:"content"`
}

// bodyOf reads a request, without its cache marks.
func bodyOf(t *testing.T, r modeltest.Request) (b wireBody) {
	t.Helper()
	if err := json.Unmarshal(r.Body, &b); err != nil {
		t.Fatal(err)
	}
	unmark(b.System)
	for _, m := range b.Messages {
		for _, x := range m.Content {
			unmark(x)
		}
	}
	return b
}

func unmark(v any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			unmark(x)
		}
	case map[string]any:
		delete(v, "cache_control")
	}
}

// signature is that of a thought behind the first n messages and the blocks before it.
func signature(b wireBody, n int, before []map[string]any, thought any) string {
	all, _ := json.Marshal([]any{b.Tools, b.System, b.Messages[:n], slices.Concat([]map[string]any{}, before), thought}) // it came as JSON
	sum := sha256.Sum256(all)
	return "sig:" + hex.EncodeToString(sum[:6])
}

// problem is why a request with such thoughts is refused, "" for nothing.
func (b wireBody) problem() string {
	for i, m := range b.Messages {
		for k, x := range m.Content {
			word := map[string]string{"thinking": "thinking", "redacted_thinking": "data"}[fmt.Sprint(x["type"])]
			if word == "" || m.Role != "assistant" {
				continue
			}
			if got := map[string]any{"thinking": x["signature"], "data": x["data"]}[word]; got != signature(b, i, m.Content[:k], x["thinking"]) {
				return fmt.Sprintf("messages.%d.content.%d: Invalid `signature` in `thinking` block. The block is bound to a different conversation.", i, k)
			}
		}
	}
	return ""
}

// shape is the blocks of a reply: T a text, C one with citations, W a blank one, H a thought, R one that is encrypted, S a tool of the
// server with its result, X a block that nobody knows, U a call, V one with a member that nobody knows.
func (b wireBody) shape(letters string, tool string) (blocks []map[string]any) {
	for i, letter := range letters {
		switch letter {
		case 'T':
			blocks = append(blocks, map[string]any{"type": "text", "text": fmt.Sprintf("text %d, über <b>\n", i)})
		case 'C':
			blocks = append(blocks, map[string]any{"type": "text", "text": fmt.Sprint("said ", i), "citations": []any{map[string]any{"type": "char_location", "at": 3.0}, map[string]any{"x": "<"}}})
		case 'W':
			blocks = append(blocks, map[string]any{"type": "text", "text": "\n\n"})
		case 'H':
			thought := fmt.Sprint("hm ", i)
			blocks = append(blocks, map[string]any{"type": "thinking", "thinking": thought, "signature": signature(b, len(b.Messages), blocks, thought)})
		case 'R':
			blocks = append(blocks, map[string]any{"type": "redacted_thinking", "data": signature(b, len(b.Messages), blocks, nil)})
		case 'S':
			id := fmt.Sprintf("srv_%d_%d", len(b.Messages), i)
			blocks = append(blocks, map[string]any{"type": "server_tool_use", "id": id, "name": "web_search", "input": map[string]any{"query": "x"}},
				map[string]any{"type": "web_search_tool_result", "tool_use_id": id, "content": []any{map[string]any{"encrypted_content": "enc"}}})
		case 'X':
			blocks = append(blocks, map[string]any{"type": "of_later", "n": float64(i), "inner": map[string]any{"a": nil}})
		case 'U', 'V':
			call := map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d_%d", len(b.Messages), i), "name": tool, "input": map[string]any{"path": ".", "n": float64(200 + 10*len(b.Messages) + i)}}
			if letter == 'V' {
				call["caller"] = map[string]any{"type": "direct"}
			}
			blocks = append(blocks, call)
		}
	}
	return blocks
}

// stream is a reply of such blocks as the API streams it.
func stream(blocks []map[string]any, stop string) modeltest.Answer {
	var events []string
	ev := func(v map[string]any) {
		b, _ := json.Marshal(v)
		events = append(events, string(b))
	}
	for i, x := range blocks {
		start, deltas := map[string]any{}, []map[string]any{}
		for name, v := range x {
			start[name] = v
		}
		grow := func(member, typ, under string, text string) {
			for piece := range slices.Chunk([]rune(text), 9) {
				deltas = append(deltas, map[string]any{"type": typ, under: string(piece)})
			}
			start[member] = ""
		}
		switch x["type"] {
		case "text":
			grow("text", "text_delta", "text", x["text"].(string))
			if cited, ok := x["citations"].([]any); ok {
				start["citations"] = cited[:1]
				deltas = append(deltas, map[string]any{"type": "citations_delta", "citation": cited[1]})
			}
		case "thinking":
			grow("thinking", "thinking_delta", "thinking", x["thinking"].(string))
			start["signature"] = ""
			deltas = append(deltas, map[string]any{"type": "signature_delta", "signature": x["signature"]})
		case "tool_use", "server_tool_use":
			input, _ := json.Marshal(x["input"])
			grow("input", "input_json_delta", "partial_json", string(input))
			start["input"] = map[string]any{}
		}
		ev(map[string]any{"type": "content_block_start", "index": i, "content_block": start})
		for _, d := range deltas {
			ev(map[string]any{"type": "content_block_delta", "index": i, "delta": d})
		}
		ev(map[string]any{"type": "content_block_stop", "index": i})
	}
	ev(map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": stop}, "usage": map[string]any{"output_tokens": 5}})
	return modeltest.Answer{Events: events}
}

// strictly starts such a server, whose replies have the shapes in turn, and then conclude. tokens is what a request of some bytes holds.
func strictly(t *testing.T, tool string, tokens func(bytes int) int, shapes ...string) *strict {
	s := &strict{}
	s.Server = modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		b := bodyOf(t, r)
		if why := b.problem(); why != "" {
			s.mu.Lock()
			s.refused = append(s.refused, why)
			s.mu.Unlock()
			return modeltest.Answer{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"` + why + `"}}`}
		}
		last := b.Messages[len(b.Messages)-1].Content
		blocks, stop, n := []map[string]any{{"type": "text", "text": "---\nstatus: done\n---\n"}}, "end_turn", r.Results()
		switch text, _ := last[len(last)-1]["text"].(string); {
		case strings.Contains(text, "replaced by a summary"):
			blocks[0]["text"] = "A summary."
		case tokens(0) == 0 && n < len(shapes), tokens(0) > 0 && s.turns() <= len(shapes):
			blocks, stop = b.shape(shapes[min(n, len(shapes)-1)], tool), "tool_use"
		}
		a := stream(blocks, stop)
		if n := tokens(len(r.Body)); n > 0 {
			a.Events = append([]string{fmt.Sprintf(`{"type":"message_start","message":{"usage":{"input_tokens":%d,"output_tokens":1}}}`, n)}, a.Events...)
		}
		return a
	})
	return s
}

// turns is how many requests came.
func (s *strict) turns() int { return len(s.Requests()) }

func untold(int) int { return 0 }

// at is a stage whose model is at the server.
func (s *strict) at(t *testing.T, tools ...string) *stage {
	st := newStage(t, "{}", tools...)
	st.agent.Models = func(name, _ string) (llms.Model, error) {
		return anthropic.New(name, "x", anthropic.Config{BaseURL: s.Root})
	}
	st.turn.Models = []string{"anthropic/x"}
	return st
}

// wantBack is what of a reply goes back: all blocks but blank texts, and what is bound to those.
func wantBack(blocks []map[string]any) (out []map[string]any) {
	loose := false
	for _, x := range blocks {
		text, isText := x["text"].(string)
		blank := isText && strings.TrimSpace(text) == ""
		bound := x["type"] == "thinking" || x["type"] == "redacted_thinking"
		if loose = loose || blank; !blank && (!bound || !loose) {
			out = append(out, x)
		}
	}
	return out
}

// TestF109RepliesGoBackBlockByBlock: replies of all shapes go back as they came, and so they do after the process was killed.
func TestF109RepliesGoBackBlockByBlock(t *testing.T) {
	const letters = "TCWHRSXUV"
	most, shapes := 2, []string{""}
	if os.Getenv("WF_LONG") != "" {
		most = 4
	}
	for from, n := 0, 0; n < most; n++ {
		for to := len(shapes); from < to; from++ {
			for _, l := range letters {
				shapes = append(shapes, shapes[from]+string(l))
			}
		}
	}
	shapes = append(shapes, "THTH", "HTHT", "HWHT", "HUHU", "UTU", "HUTH", "HST", "RTR")
	for _, shape := range shapes {
		first, second := shape+"U", "H"+shape+"V"
		if r := calls(first); r > 1 { // the next reply is found by the results
			second = first
		}
		server := strictly(t, "list_files", untold, slices.Concat(slices.Repeat([]string{first}, calls(first)), slices.Repeat([]string{second}, calls(second)))...)
		s, whole := server.at(t, "list_files"), &journal{}
		if _, err := s.perform(t, whole); err != nil {
			t.Fatalf("%s: %v", shape, err)
		}
		requests := server.Requests()
		for i, r := range requests[:len(requests)-1] {
			said := bodyOf(t, r).shape([]string{first, second}[min(i, 1)], "list_files")
			if d := cmp.Diff(types(wantBack(said)), types(bodyOf(t, requests[i+1]).Messages[2*i+1].Content)); d != "" {
				t.Fatalf("%s: reply %d goes back otherwise: %s", shape, i, d)
			}
		}
		// The process dies before the last reply.
		for stop := 2; stop < len(whole.commits); stop += 2 {
			again, j := server.at(t, "list_files"), &journal{stop: stop}
			if _, err := again.perform(t, j); !errors.Is(err, errKilled) {
				t.Fatalf("%s: %v", shape, err)
			}
			j.stop = 0
			if _, err := again.perform(t, j); err != nil {
				t.Fatalf("%s: %v", shape, err)
			}
			all := server.Requests()
			if d := cmp.Diff(string(requests[len(requests)-1].Body), string(all[len(all)-1].Body)); d != "" {
				t.Fatalf("%s: after the kill at %d: %s", shape, stop, d)
			}
		}
		if why := server.problems(); len(why) > 0 {
			t.Fatalf("%s: %v", shape, why)
		}
	}
}

// calls is how many calls a shape has.
func calls(shape string) int { return strings.Count(shape, "U") + strings.Count(shape, "V") }

// types tells blocks by all but their signatures.
func types(blocks []map[string]any) (out []string) {
	for _, x := range blocks {
		y := map[string]any{}
		for name, v := range x {
			if name != "signature" && name != "data" {
				y[name] = v
			}
		}
		b, _ := json.Marshal(y)
		out = append(out, string(b))
	}
	return out
}

// TestF103ThoughtsDoNotOutliveTheirPrefix: a visit whose older part gave way to a summary goes on, and text and calls of what is kept stay.
func TestF103ThoughtsDoNotOutliveTheirPrefix(t *testing.T) {
	for _, shape := range []string{"HTU", "HUHU", "RTHU", "TU"} {
		server := strictly(t, "read", func(bytes int) int { return 1 + bytes/4 }, slices.Repeat([]string{shape}, 14)...)
		st := working(t, 1, "coder#1: [{text: unused}]")
		st.agent.Models = server.at(t).agent.Models
		st.turn.Models = []string{"anthropic/x"}
		st.turn.Role.Compaction = &protocol.CompactionSpec{Watermark: 900}
		j := &journal{}
		if _, err := st.perform(t, j); err != nil {
			t.Fatalf("%s: %v", shape, err)
		}
		if why := server.problems(); len(why) > 0 || len(find[protocol.Compacted](j)) == 0 {
			t.Errorf("%s: %v, %v", shape, why, j.types())
		}
	}
}
