package ask

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/roles/frontmatter"
)

// readForm asks for the fields of a form, one after the other as they were written. A value that
// does not fit is asked for again, with the reason. io.EOF is the end of input.
func (t *Terminal) readForm(ctx context.Context, form string) (protocol.JSON, error) {
	filled := map[string]any{}
	for _, f := range protocol.FormFields(form) {
		fmt.Fprintf(t.Err, "  %s %s\n", t.Err.Bold(render.Visible(f.Name)), t.Err.Dim(render.AboutField(f)))
		if f.Description != "" {
			fmt.Fprintf(t.Err, "    %s\n", render.IndentLines(f.Description, "    "))
		}
		for i, v := range f.Enum {
			fmt.Fprintf(t.Err, "    %d  %s\n", i+1, render.Visible(protocol.JSONText(v)))
		}
		for {
			text, err := t.readLine(ctx, prompt)
			if err != nil {
				return nil, err
			}
			wrong := fillField(filled, f, text, form)
			if wrong == "" {
				break
			}
			fmt.Fprintf(t.Err, "    %s\n", t.Err.Red(render.Visible(f.Name+": "+wrong)))
		}
	}
	return protocol.CanonicalJSON(filled)
}

// fillField puts what was written for a field among those that are filled, and says what is
// wrong with it. An empty text is the default; without one, a field that is not required is
// left out.
func fillField(filled map[string]any, f protocol.FormField, text, form string) (wrong string) {
	delete(filled, f.Name)
	n, err := strconv.Atoi(text)
	switch {
	case text == "" && len(f.Default) > 0:
		filled[f.Name] = f.Default
	case text == "" && f.Required:
		return "a value is required (Ctrl-D leaves the question open)"
	case text == "":
		return ""
	case len(f.Enum) > 0 && err == nil && n >= 1 && n <= len(f.Enum):
		filled[f.Name] = f.Enum[n-1]
	default:
		filled[f.Name] = f.Read(text)
	}
	so, err := protocol.CanonicalJSON(filled)
	if err != nil {
		return err.Error()
	}
	at := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(f.Name)
	var reasons []string
	for _, v := range frontmatter.Validate(so, form) {
		if rest, of := strings.CutPrefix(v.Pointer, at); of && (rest == "" || rest[0] == '/') {
			reasons = append(reasons, strings.TrimPrefix(rest+": "+v.Reason, ": "))
		}
	}
	return strings.Join(reasons, "; ")
}
