package model

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"wf/protocol/lazy"
)

// Overflow is the refusal of a request that holds more than the model reads. Both are tokens, 0
// where the server does not tell.
type Overflow struct {
	Window int64 // what the model reads at most, its answer included
	Held   int64 // what the request held, without the answer
}

// OverflowOf reads from the refusal of a request whether it holds too much: body is an error as
// the server wrote it, in JSON or as text; nil is another reason.
//
// Servers say it in a code (context_length_exceeded of OpenAI, exceed_context_size_error of
// llama-server), in the status 413, or in words alone, as vLLM and Anthropic do.
func OverflowOf(status int, body []byte) *Overflow {
	var shape struct {
		Error json.RawMessage `json:"error"`
	}
	var inner struct {
		Code   json.RawMessage `json:"code"`
		Type   string          `json:"type"`
		Window int64           `json:"n_ctx"`
		Held   int64           `json:"n_prompt_tokens"`
	}
	_ = json.Unmarshal(body, &shape)        // what is no JSON is read as words
	_ = json.Unmarshal(shape.Error, &inner) // so is an error of another shape
	code := strings.Trim(string(inner.Code), `"`)
	text := string(body)
	switch {
	case overflowCodes[code], overflowCodes[inner.Type], status == 413:
	case status != 400 && status != 422 && status != 0 || !overflowWords().MatchString(text):
		return nil
	}
	o := &Overflow{}
	for to, n := range map[*int64]int64{&o.Window: inner.Window, &o.Held: inner.Held} {
		if Told(&n) {
			*to = n
		}
	}
	for _, form := range overflowNumbers() {
		found := form.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		for i, to := range map[string]*int64{"window": &o.Window, "held": &o.Held} {
			if at := form.SubexpIndex(i); at > 0 && *to == 0 {
				if n, err := strconv.ParseInt(strings.ReplaceAll(found[at], ",", ""), 10, 64); err == nil && Told(&n) {
					*to = n
				}
			}
		}
	}
	return o
}

var overflowCodes = map[string]bool{
	"context_length_exceeded": true, "exceed_context_size_error": true, "request_too_large": true,
}

var overflowWords = lazy.Regexp(`(?i)maximum context length|context (size|length|window|limit)|(prompt|input) is too long|` +
	`maximum number of (input )?tokens|reduce the length of the (messages|prompt|input)|too large for model with`)

// overflowNumbers are the sentences that tell numbers, the most exact ones first: what the
// messages hold comes before what was requested together with the answer.
var overflowNumbers = sync.OnceValue(func() (forms []*regexp.Regexp) {
	const n = `[\d,]+`
	window, held := `(?P<window>`+n+`)`, `(?P<held>`+n+`)`
	for _, form := range []string{
		held + ` tokens? > ` + window + ` maximum`,
		`context limit: ` + held + ` \+ ` + n + ` > ` + window,
		`request \(` + held + ` tokens\) exceeds the available context size \(` + window + ` tokens\)`,
		`token count \(` + held + `\) exceeds the maximum number of tokens allowed \(` + window + `\)`,
		`contains ` + held + ` tokens.*too large for model with ` + window + ` maximum context length`,
		`maximum context length (?:is|of) (?:only )?` + window,
		`context length of (?:only )?` + window,
		`\(` + held + ` in the messages`,
		held + ` in (?:the|your) prompt`,
		`(?:has|contains)(?: at least)? ` + held + ` input tokens`,
		`messages resulted in ` + held + ` tokens`,
		`requested (?:about )?` + held + ` tokens`,
	} {
		forms = append(forms, regexp.MustCompile(`(?is)`+form))
	}
	return forms
})
