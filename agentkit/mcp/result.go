package mcp

import (
	"fmt"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles"
)

// ResultMax is how many bytes of a result the model gets: two thirds from its beginning, one
// from its end.
const ResultMax = 20_000

// offered is a tool as it is recorded and sent.
func offered(wire string, t *sdk.Tool) (protocol.Tool, error) {
	schema, err := protocol.CanonicalJSON(t.InputSchema)
	if err != nil {
		return protocol.Tool{}, fmt.Errorf("the schema of its arguments: %w", err)
	}
	if len(schema) == 0 || schema[0] != '{' {
		schema = []byte(`{"type":"object"}`)
	}
	text := new(roles.Redactor).String(strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(t.Description, "\r\n", "\n"), "�")))
	return protocol.Tool{Name: wire, Description: text, Parameters: schema}, nil
}

// result is what the model reads of an answer; clean hides secrets, before anything is cut off.
func result(r *sdk.CallToolResult, clean func(string) string) tool.Result {
	if r.NeedsInput() {
		return tool.Failed("the tool asks for input, which nobody can give here")
	}
	var parts []string
	for _, c := range r.Content {
		if text := part(c); text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		if b, err := protocol.CanonicalJSON(r.StructuredContent); err == nil {
			parts = append(parts, string(b))
		}
	}
	text := strings.Join(parts, "\n")
	if clean != nil {
		text = clean(text)
	}
	return tool.Result{Content: cut(text), IsError: r.IsError}
}

// part is one content as text; what is none is named.
func part(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return fmt.Sprintf("[image, %s, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[audio, %s, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return "[resource " + c.URI + "]"
	case *sdk.EmbeddedResource:
		switch {
		case c.Resource == nil:
			return ""
		case c.Resource.Text != "":
			return c.Resource.Text
		}
		return fmt.Sprintf("[resource %s, %d bytes]", c.Resource.URI, len(c.Resource.Blob))
	}
	return fmt.Sprintf("[%T]", c)
}

// cut shortens a text to ResultMax bytes, at runes.
func cut(s string) string {
	if len(s) <= ResultMax {
		return s
	}
	head, tail := roles.CutRunes(s, ResultMax*2/3), len(s)-ResultMax/3
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n…[%d bytes left out]…\n%s", s[:head], tail-head, s[tail:])
}
