package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
)

// replied is a content block of a reply on Anthropic's wire, as far as its order goes.
type replied struct{ Type, Text, Thinking, Data string }

func (b replied) String() string {
	return strings.TrimSpace(b.Type + " " + b.Text + b.Thinking + b.Data)
}

// firstReply is what a request says that the model replied first, block by block.
func firstReply(r modeltest.Request) (blocks []string) {
	var body struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return nil
	}
	for _, m := range body.Messages {
		var all []replied
		if m.Role != "assistant" || json.Unmarshal(m.Content, &all) != nil {
			continue
		}
		for _, b := range all {
			blocks = append(blocks, b.String())
		}
		break
	}
	return blocks
}

// replies are replies of which each block is its own, in the order in which they came. A blank text is no block that a
// provider takes back, so it must not be what a later thought is bound to: such a thought goes too.
var replies = map[string]struct {
	say  []modeltest.Piece
	back string // the blocks as they go back
}{
	"text, thought, text, call":               {say("one", thought("b"), "two", 0), "text one|thinking b|text two|tool_use"},
	"thought, text, thought, text, call":      {say(thought("a"), "one", thought("b"), "two", 0), "thinking a|text one|thinking b|text two|tool_use"},
	"thought, call, thought, call":            {say(thought("a"), 0, thought("b"), 1), "thinking a|tool_use|thinking b|tool_use"},
	"call, text, call":                        {say(0, "mid", 1), "tool_use|text mid|tool_use"},
	"thought, call, text, thought, call":      {say(thought("a"), 0, "mid", thought("b"), 1), "thinking a|tool_use|text mid|thinking b|tool_use"},
	"a redacted thought, call":                {say(modeltest.Piece{Redacted: "ENCRYPTED=="}, 0), "redacted_thinking ENCRYPTED==|tool_use"},
	"thought, text that ends in blanks, call": {say(thought("a"), "I look.\n\n", 0), "thinking a|text I look.|tool_use"},
	"thought, blank text, thought, call":      {say(thought("a"), "\n\n", thought("b"), 0), ""},
	"thought, a tool of the provider, text, call": {say(thought("s"), server("server_tool_use", "query"), server("web_search_tool_result", "content"), "found", 0),
		"thinking s|server_tool_use|web_search_tool_result|text found|tool_use"},
}

type thought string

// say is pieces of a reply: texts, thoughts, calls by their number, and blocks as they are.
func say(parts ...any) (pieces []modeltest.Piece) {
	for _, part := range parts {
		switch x := part.(type) {
		case string:
			pieces = append(pieces, modeltest.Piece{Text: x})
		case thought:
			pieces = append(pieces, modeltest.Piece{Thinking: string(x)})
		case int:
			pieces = append(pieces, modeltest.Piece{Call: &modeltest.CallPiece{Index: x, ID: fmt.Sprint("toolu_", x), Name: "read_file", Args: `{"path":"w.yaml"}`}})
		case modeltest.Piece:
			pieces = append(pieces, x)
		}
	}
	return append(pieces, modeltest.Piece{Finish: "tool_calls"})
}

// server is a block of a tool that the provider performs itself.
func server(kind, member string) modeltest.Piece {
	b := map[string]any{"type": kind, member: []any{map[string]any{"type": "web_search_result", "url": "http://x", "title": "t", "encrypted_content": "enc"}}}
	if kind == "server_tool_use" {
		b = map[string]any{"type": kind, "id": "srvtoolu_1", "name": "web_search", "input": map[string]any{"query": "x"}}
	} else {
		b["tool_use_id"] = "srvtoolu_1"
	}
	return modeltest.Piece{Block: b}
}

const worldReads = `wf: 1
name: reads
limits: {tokens: 90000000}
defaults: {model: ant/claude-opus-5-5, timeout: 2m}
roles: {a: {prompt: You read files., tools: [read_file], max_turns: 60%s}}
`

// A reply goes back block by block as it came: else a thought in it stands behind other blocks than it was thought
// behind.
func TestF109AReplyGoesBackBlockByBlock(t *testing.T) {
	t.Parallel()
	for name, c := range replies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
				if r.Results() > 0 {
					return modeltest.Text("Fine.")
				}
				return modeltest.Answer{Usage: true, Say: c.say}
			})
			s.Binds = true
			w := inWorld(t, s, fmt.Sprintf(worldReads, ""))
			w.ends(0, "run", "w.yaml", "-q")
			requests := s.Requests()
			w.is("requests", len(requests), 2)
			if got := strings.Join(firstReply(requests[len(requests)-1]), "|"); c.back != "" {
				w.is("the reply goes back as", got, c.back)
			}
			w.over()
		})
	}
}

// A compaction within a visit replaces what later thoughts of the visit are bound to: they go with it. Twenty-five
// files are read, each once, and no request is refused.
func TestF103ThoughtsBehindACompactionOfTheirVisit(t *testing.T) {
	t.Parallel()
	const files = 25
	summaries := 0
	s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		if strings.Contains(string(r.Body), "about to be replaced") {
			return modeltest.Answer{Usage: true, Say: say(thought("s"), "What was done: files were read.")[:2]}
		}
		next := 0
		for i := range files {
			if strings.Contains(string(r.Body), fmt.Sprintf("This is file %d.", i)) {
				next = i + 1
			}
		}
		if next == files {
			return modeltest.Answer{Usage: true, Say: say(thought("end"), "All are read.")[:2]}
		}
		read := modeltest.Piece{Call: &modeltest.CallPiece{ID: fmt.Sprint("toolu_", next), Name: "read_file", Args: fmt.Sprintf(`{"path":"file%d"}`, next)}}
		return modeltest.Answer{Usage: true, Say: say(thought(fmt.Sprint("step ", next)), "I read.", read)}
	})
	s.Binds = true
	w := inWorld(t, s, fmt.Sprintf(worldReads, ", compaction: {watermark: 12000}"))
	for i := range files {
		write(t, w.dir, fmt.Sprint("file", i), fmt.Sprintf("This is file %d.\n%s", i, strings.Repeat("line of the file\n", 120)))
	}
	w.ends(0, "run", "w.yaml", "-q")
	requests := s.Requests()
	for _, r := range requests {
		if strings.Contains(string(r.Body), "about to be replaced") {
			summaries++
		}
	}
	w.claim(summaries > 0, "nothing was compacted in %d requests", len(requests))
	w.is("requests", len(requests)-summaries, files+1)
	w.over()
}
