package chat

import (
	"fmt"
	"strings"

	"wf/cmd/internal/plain"
	"wf/protocol"
)

// fieldHint is a field as the screen asks for it.
func fieldHint(f protocol.FormField) string {
	text := plain.Text(f.Name)
	switch {
	case len(f.Enum) > 0:
		var values []string
		for _, v := range f.Enum {
			values = append(values, protocol.JSONText(v))
		}
		text += "=" + plain.Line(plain.Text(strings.Join(values, "|")), 60)
	case f.Type != "" && f.Type != "string":
		text += "=" + plain.Text(f.Type)
	}
	if !f.Required {
		text = "[" + text + "]"
	}
	return text
}

// fill reads the fields that were written: name=value, one on a line. Where there is one field
// alone, or one alone is required, its name may be left out.
func fill(fields []protocol.FormField, text string) (map[string]any, error) {
	lines := strings.Split(text, "\n")
	if len(lines) == 1 || !strings.Contains(lines[0], "=") {
		if name, _, ok := strings.Cut(text, "="); !ok || find(fields, name) == nil {
			if f := only(fields); f != nil {
				return map[string]any{f.Name: f.Read(text)}, nil
			}
		}
	}
	out := map[string]any{}
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		name, value, ok := strings.Cut(l, "=")
		f := find(fields, name)
		if !ok || f == nil {
			return nil, fmt.Errorf("%q is none of the fields; write name=value, one on a line", plain.Line(plain.Text(l), 40))
		}
		out[f.Name] = f.Read(strings.TrimSpace(value))
	}
	return out, nil
}

// complete puts in the defaults of fields that were left out, and names the first one that has to
// be filled in and was not.
func complete(fields []protocol.FormField, filled map[string]any) error {
	for _, f := range fields {
		_, there := filled[f.Name]
		switch {
		case there:
		case len(f.Default) > 0:
			filled[f.Name] = f.Default
		case f.Required:
			return fmt.Errorf("%s is required too: write name=value, each on a line", plain.Line(plain.Text(f.Name), 40))
		}
	}
	return nil
}

// only is the field whose name may be left out.
func only(fields []protocol.FormField) *protocol.FormField {
	if len(fields) == 1 {
		return &fields[0]
	}
	var one *protocol.FormField
	for i := range fields {
		if fields[i].Required && one != nil {
			return nil
		}
		if fields[i].Required {
			one = &fields[i]
		}
	}
	return one
}

func find(fields []protocol.FormField, name string) *protocol.FormField {
	for i := range fields {
		if fields[i].Name == strings.TrimSpace(name) {
			return &fields[i]
		}
	}
	return nil
}
