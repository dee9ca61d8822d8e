package ask

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/roles/frontmatter"
)

// A Terminal is where a person is asked.
type Terminal struct {
	*render.Printer
	In io.Reader

	lines *bufio.Reader // In, once questions are read from it
}

// Ask asks the person at the terminal what a run waits for, and has the answer recorded.
// It reports false where the run waits for something else, or the person leaves it open.
func (t *Terminal) Ask(ctx context.Context, v *api.Run, record func(context.Context, api.Answer) error) (bool, error) {
	if v.Status != protocol.Waiting {
		return false, nil
	}
	for _, w := range v.Waiting {
		switch w.Kind {
		case protocol.WaitQuestion, protocol.WaitChoice, protocol.WaitApproval, protocol.WaitTask:
		default:
			continue
		}
		fmt.Fprintf(t.Err, "\n%s %s\n", t.Err.Bold(w.Step+" asks:"), render.IndentLines(w.Question, "  "))
		for i, c := range w.Choices {
			fmt.Fprintf(t.Err, "  %d  %s\n", i+1, c.Label)
		}
		if text := render.Asking(w); text != "" {
			fmt.Fprintf(t.Err, "  %s\n", t.Err.Dim(text))
		}
		if w.Kind == protocol.WaitApproval {
			fmt.Fprintf(t.Err, "  %s\n", t.Err.Dim("a reason goes behind: deny use the test database"))
		}
		reply, err := t.readReply(ctx, w)
		if err != nil || reply == nil {
			return false, err
		}
		reply.Step, reply.Shown, reply.Source = w.Step, w.Shown, "terminal"
		err = record(ctx, *reply)
		switch {
		case errors.Is(err, protocol.ErrAnswer), errors.Is(err, protocol.ErrUsage): // asked again
			fmt.Fprintln(t.Err, strings.TrimRight(render.Visible(err.Error()), "\n"))
			return true, nil
		case errors.Is(err, protocol.ErrNotWaiting):
			t.Progress("%s was answered elsewhere meanwhile", w.Step)
			return true, nil
		}
		return err == nil, err
	}
	return false, nil
}

// readReply reads what a question asks for: a line, unless there is nothing but a form, and
// then each field of the form. It is nil where the person leaves the question open, by an
// empty line or the end of input. A number picks a choice; with a text behind it, the text goes
// along.
func (t *Terminal) readReply(ctx context.Context, w api.Waiting) (*api.Answer, error) {
	var reply api.Answer
	if len(w.Form) == 0 || len(w.Choices) > 0 {
		text, err := t.readLine(ctx, prompt)
		if text == "" && (err == nil || errors.Is(err, io.EOF)) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		reply.Text = text
		number, rest, _ := strings.Cut(text, " ")
		for i, c := range w.Choices {
			if number == fmt.Sprint(i+1) || strings.EqualFold(number, c.Value) {
				reply = api.Answer{Choice: c.Value, Text: strings.TrimSpace(rest)}
				break
			}
		}
	}
	if len(w.Form) == 0 {
		return &reply, nil
	}
	fields, err := t.readForm(ctx, string(w.Form))
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	reply.Fields = json.RawMessage(fields)
	return &reply, err
}

// prompt stands in front of an answer.
const prompt = "> "

// readLine shows a prompt and reads a line. io.EOF is the end of input; a last line without its
// end is a line.
func (t *Terminal) readLine(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(t.Err, prompt)
	if t.lines == nil {
		t.lines = bufio.NewReader(t.In)
	}
	type input struct {
		text string
		err  error
	}
	got := make(chan input, 1)
	go func() {
		text, err := t.lines.ReadString('\n')
		got <- input{text, err}
	}()
	select {
	case in := <-got:
		text := strings.TrimSpace(in.text)
		if text != "" && errors.Is(in.err, io.EOF) {
			return text, nil
		}
		return text, in.err
	case <-ctx.Done(): // the reader is left behind; the process ends soon
		return "", context.Cause(ctx)
	}
}

// Confirm asks a question that y or yes agrees to.
func (t *Terminal) Confirm(ctx context.Context, question string) (bool, error) {
	text, err := t.readLine(ctx, question+" [y/N] ")
	if err != nil {
		return false, context.Cause(ctx) // the end of input is no yes
	}
	return strings.HasPrefix(strings.ToLower(text), "y"), nil
}

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
