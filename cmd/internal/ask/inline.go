package ask

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"wf/cmd/internal/plain"
)

// inline shows a form below what was printed, and leaves what was filled in there.
type inline struct {
	*Form
	width, height int
	tall, used    int // lines that were drawn at most, and those that are
}

func (i *inline) Init() tea.Cmd { return nil }

func (i *inline) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if size, ok := msg.(tea.WindowSizeMsg); ok {
		i.width, i.height = size.Width, size.Height
		return i, nil
	}
	if key, ok := msg.(tea.KeyPressMsg); ok && key.String() == "ctrl+z" {
		return i, tea.Suspend
	}
	i.Form.Update(msg)
	if i.State() != Filling {
		return i, tea.Quit
	}
	return i, nil
}

func (i *inline) View() tea.View {
	v := tea.NewView("")
	if i.width > 0 && i.height > 1 {
		lines := i.Lines(i.width, max(1, i.height-2))
		// It never becomes lower: bubbletea would leave lines behind. The last line is wiped when the program ends.
		i.used, i.tall = len(lines), min(max(i.tall, len(lines)+1), i.height-1)
		v.Content = plain.Painted(strings.Join(lines, "\n") + strings.Repeat("\n", max(0, i.tall-i.used)))
	}
	return v
}

// fill has a form filled in at the terminal. It reports false where the person leaves it.
func (t *Terminal) fill(ctx context.Context, f *Form) (bool, error) {
	if f.State() == Filled { // a form without fields
		return true, nil
	}
	shown := &inline{Form: f}
	p := tea.NewProgram(shown, tea.WithContext(ctx), tea.WithInput(t.In), tea.WithOutput(t.Err.Writer), tea.WithoutSignalHandler())
	_, err := p.Run()
	if below := shown.tall - shown.used - 1; below > 0 {
		if _, err := io.WriteString(t.Err.Writer, ansi.CursorUp(below)); err != nil {
			return false, err
		}
	}
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err == nil && f.stopped { // the terminal was raw: it made no signal of the key
		err = interrupt(ctx)
	}
	return f.State() == Filled, err
}

// interrupt does what Ctrl-C does elsewhere.
func interrupt(ctx context.Context) error {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(os.Interrupt)
	}
	if err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}
