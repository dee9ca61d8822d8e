package ask

import (
	"bufio"
	"context"
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
// It reports false where the run waits for something else, or the person leaves it open. With step, only what that step
// asks is asked for.
func (t *Terminal) Ask(ctx context.Context, v *api.Run, step string, record func(context.Context, api.Answer) error) (bool, error) {
	if v.Status != protocol.Waiting {
		return false, nil
	}
	for _, w := range v.Waiting {
		if step != "" && w.Step != step {
			continue
		}
		switch w.Kind {
		case protocol.WaitQuestion, protocol.WaitChoice, protocol.WaitApproval, protocol.WaitTask:
		default:
			continue
		}
		fmt.Fprintf(t.Err, "\n%s %s\n", t.Err.Bold(w.Step+" asks:"), render.IndentLines(w.Question, "  "))
		if len(w.Form) == 0 { // else the form lists them
			for i, c := range w.Choices {
				fmt.Fprintf(t.Err, "  %d  %s\n", i+1, render.IndentLines(c.Label, "     "))
			}
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

// readReply reads what a question asks for: a line, or what its form takes. It is nil where the person leaves the
// question open.
func (t *Terminal) readReply(ctx context.Context, w api.Waiting) (*api.Answer, error) {
	if len(w.Form) > 0 {
		f := NewForm(w)
		filled, err := t.fill(ctx, f)
		if err != nil || !filled {
			return nil, err
		}
		reply, err := f.Answer()
		return &reply, err
	}
	text, err := t.readLine(ctx, prompt)
	switch {
	case text == "" && (err == nil || errors.Is(err, io.EOF)), text == "\x1b" && err == nil: // Esc
		return nil, nil
	case err != nil:
		return nil, err
	}
	return new(choiceIn(w, text)), nil
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
		return "a value is required (Esc leaves the question open)"
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
	at := render.FieldPointer(f.Name)
	var reasons []string
	for _, v := range frontmatter.Validate(so, form) {
		if rest, of := strings.CutPrefix(v.Pointer, at); of && (rest == "" || rest[0] == '/') {
			reasons = append(reasons, strings.TrimPrefix(rest+": "+v.Reason, ": "))
		}
	}
	return strings.Join(reasons, "; ")
}
