package ask

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/roles/frontmatter"
)

// A Terminal is where a person is asked.
type Terminal struct {
	*render.Printer
	In io.Reader
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
		if err := t.drop(); err != nil {
			return false, err
		}
		fmt.Fprintf(t.Err, "\n%s\n", t.Err.Wrap(t.Err.Bold(w.Step+" asks:")+" "+render.Visible(w.Question), "  "))
		if len(w.Form) == 0 { // else the form lists them
			keys := pickable{w.Choices}.keys()
			for i, c := range w.Choices {
				line := keys[i]
				if c.Label != line {
					line += "  " + render.Visible(c.Label)
				}
				fmt.Fprintf(t.Err, "  %s\n", t.Err.Wrap(line, "     "))
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

// readReply reads what a question asks for. It is nil where the person leaves the question open.
func (t *Terminal) readReply(ctx context.Context, w api.Waiting) (*api.Answer, error) {
	f := NewForm(w)
	f.listed = len(w.Form) == 0
	if filled, err := t.fill(ctx, f); err != nil || !filled {
		return nil, err
	}
	reply, err := f.Answer()
	return &reply, err
}

// readLine shows a prompt and reads a line that is written behind it: what was written before it was asked is no answer.
func (t *Terminal) readLine(ctx context.Context, prompt string) (string, error) {
	if err := t.drop(); err != nil {
		return "", err
	}
	fmt.Fprint(t.Err, prompt)
	type input struct {
		text string
		err  error
	}
	got := make(chan input, 1)
	go func() {
		text, err := bufio.NewReader(t.In).ReadString('\n')
		got <- input{text, err}
	}()
	select {
	case in := <-got:
		return strings.TrimSpace(in.text), in.err
	case <-ctx.Done(): // the reader is left behind; the process ends soon
		return "", context.Cause(ctx)
	}
}

// drop drops what was written or pasted before a question is asked.
func (t *Terminal) drop() error {
	f, is := t.In.(*os.File)
	if !is || !term.IsTerminal(f.Fd()) {
		return nil
	}
	if err := flush(int(f.Fd())); err != nil {
		return fmt.Errorf("drop what was typed before the question: %w", err)
	}
	return nil
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
	picked := enum(f.Enum).at(text)
	switch {
	case text == "" && len(f.Default) > 0:
		filled[f.Name] = f.Default
	case text == "" && f.Required:
		return "a value is required (Esc leaves the question open)"
	case text == "":
		return ""
	case picked >= 0:
		filled[f.Name] = f.Enum[picked]
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
