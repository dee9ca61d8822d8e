package trace

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"wf/protocol"
)

// work takes what an agent did within a stretch of its visit. The events of a reply precede the usage of the call
// that brought it.
func (f *fold) work(v *stretch, step string, seq protocol.Seq, at int64, d protocol.Data) error {
	switch d := d.(type) {
	case protocol.Thinking:
		v.replied = true
	case protocol.TextSaid:
		v.replied = true
		return f.say(v, part{Type: "text"}, d.Content)
	case protocol.ToolCall:
		c := &call{name: d.Name, call: d.Call, parent: v.id, seq: seq, from: at}
		if f.text == nil && !slices.Contains(v.tools, d.Name) && !protocol.IsTaskControl(d.Name) {
			c.name = unoffered
		}
		f.calls[step+"\x00"+d.Call] = c
		v.asked, v.replied = append(v.asked, c), true
		if f.text == nil {
			return nil
		}
		var err error
		if c.args, err = f.text(d.Args); err != nil {
			return err
		}
		v.said = append(v.said, part{Type: "tool_call", ID: d.Call, Name: d.Name, Args: argsOf(c.args)})
	case protocol.Usage:
		if d.Child != nil {
			return nil // it is in the run of the sub-workflow
		}
		return f.chat(v, seq, at, d)
	case protocol.Approval:
		if c := f.calls[step+"\x00"+d.Call]; c != nil && c.from == 0 {
			c.from = at
		}
	case protocol.ToolResult:
		return f.answered(v, step, seq, at, d)
	}
	return nil
}

// unoffered is the name of a tool that there is not.
const unoffered = "unknown"

func (f *fold) say(v *stretch, p part, words protocol.Text) (err error) {
	if f.text != nil {
		p.Content, err = f.text(words)
		v.said = append(v.said, p)
	}
	return err
}

// chat makes the span of a call of a model, which ended at a time.
func (f *fold) chat(v *stretch, seq protocol.Seq, at int64, u protocol.Usage) error {
	id := f.trace.Span(f.run, v.step, v.attempt, seq)
	provider, model, ok := strings.Cut(u.Model, "/")
	if !ok {
		provider, model = "", u.Model
	}
	s := f.span(id, v.id, "chat "+model, max(at-u.TotalMS*1000, int64(v.Start)), text("gen_ai.operation.name", "chat"), text("gen_ai.request.model", model))
	s.Kind, s.End = client, nanos(at)
	if provider != "" {
		s.Attributes = append(s.Attributes, text("gen_ai.provider.name", provider))
	}
	for _, n := range []struct {
		key string
		n   *int64
	}{{"input_tokens", u.Input}, {"output_tokens", u.Output}, {"cache_read.input_tokens", u.Cached}, {"cache_creation.input_tokens", written(u)}, {"reasoning.output_tokens", u.Reasoning}} {
		if n.n != nil {
			s.Attributes = append(s.Attributes, number("gen_ai.usage."+n.key, *n.n))
		}
	}
	if v.replied {
		s.Attributes = append(s.Attributes, seconds("gen_ai.response.time_to_first_chunk", u.TTFE))
	}
	if u.Kind != protocol.UsageTurn {
		s.Attributes = append(s.Attributes, text("wf.call", u.Kind))
	}
	finish := finishReason(u, v.replied, len(v.asked) > 0)
	if finish != "" {
		s.Attributes = append(s.Attributes, texts("gen_ai.response.finish_reasons", finish))
	}
	if finish == "" || u.Stop == protocol.StopRefused {
		s.Status.Code = statusError
		s.Attributes = append(s.Attributes, text("error.type", cmp.Or(u.Stop, "no_reply")))
	}
	if len(v.said) > 0 {
		said, err := encoded("gen_ai.output.messages", []message{{Role: "assistant", Parts: v.said, Finish: finish}})
		if err != nil {
			return err
		}
		s.Attributes = append(s.Attributes, said)
	}
	for _, c := range v.asked {
		c.parent = id
	}
	v.asked, v.said, v.replied = nil, nil, false
	return f.to(s)
}

// written is what a call wrote into the provider's cache; nil where that is not reported.
func written(u protocol.Usage) *int64 {
	if u.CacheWrite5m == nil && u.CacheWrite1h == nil {
		return nil
	}
	var sum int64
	for _, n := range []*int64{u.CacheWrite5m, u.CacheWrite1h} {
		if n != nil {
			sum += *n
		}
	}
	return &sum
}

// finishReason is why a reply ended, in the words of the conventions; "" where there is none.
func finishReason(u protocol.Usage, replied, tools bool) string {
	switch {
	case u.Stop == protocol.StopLength:
		return "length"
	case u.Stop == protocol.StopRefused:
		return "content_filter"
	case u.Stop != "", !replied && u.Input == nil && u.Output == nil:
		return ""
	case tools:
		return "tool_call"
	}
	return "stop"
}

// answered makes the span of a call of a tool.
func (f *fold) answered(v *stretch, step string, seq protocol.Seq, at int64, d protocol.ToolResult) error {
	key := step + "\x00" + d.Call
	c := f.calls[key]
	if c == nil {
		return nil
	}
	delete(f.calls, key)
	if c.from == 0 {
		c.from = int64(v.Start)
	}
	if !c.again {
		seq = c.seq // else the call has a span already
	}
	s := f.tool(v, c, seq, at, d.IsError)
	if f.text != nil {
		result, err := f.text(d.Content)
		if err != nil {
			return err
		}
		s.Attributes = append(s.Attributes, text("gen_ai.tool.call.result", result))
	}
	return f.to(s)
}

// tool is the span of a call of a tool by a visit.
func (f *fold) tool(v *stretch, c *call, seq protocol.Seq, at int64, failed bool) span {
	s := f.span(f.trace.Span(f.run, v.step, v.attempt, seq), c.parent, "execute_tool "+c.name, c.from, text("gen_ai.operation.name", "execute_tool"),
		text("gen_ai.tool.name", c.name), text("gen_ai.tool.call.id", c.call))
	s.End = max(nanos(at), s.Start)
	if failed {
		s.Status.Code = statusError
		s.Attributes = append(s.Attributes, text("error.type", "tool_error"))
	}
	if c.args != "" {
		s.Attributes = append(s.Attributes, text("gen_ai.tool.call.arguments", c.args))
	}
	return s
}

// argsOf are the arguments of a call as JSON, or as the text that the model wrote where that has no canonical form: it is no
// JSON, or has numbers or keys that readers would not see alike.
func argsOf(s string) any {
	if b, err := protocol.CanonicalizeJSON([]byte(s)); err == nil {
		return json.RawMessage(b)
	}
	return s
}
