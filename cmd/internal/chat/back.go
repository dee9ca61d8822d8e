package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// back takes turns back, or forth again.
func (s *session) back(ctx context.Context, c Command) (Outcome, error) {
	if s.at.Near == nil {
		return Outcome{}, protocol.ErrUsage.With("", "/%s works where the store and the files are, not at a server: wf chat %s on that machine does it; /fork goes back with the conversation alone", c.Action, s.run())
	}
	b := api.Back{Forth: c.Action == Redo, Each: c.Each}
	for _, arg := range strings.Fields(c.Arg) {
		switch {
		case arg == "--force":
			b.Force = true
		case c.Action == Rewind && b.To == "" && !strings.HasPrefix(arg, "-"):
			b.To = arg
		case c.Action == Rewind:
			return Outcome{}, protocol.ErrUsage.With("", "/rewind %s: want a step, or its number in the list, and --force", c.Arg)
		default:
			return Outcome{}, protocol.ErrUsage.With("", "/%s takes nothing but --force; /rewind STEP goes to a step", c.Action)
		}
	}
	if c.Action == Rewind && b.To == "" {
		turns, err := s.at.Near.Turns(ctx, s.run())
		if err == nil && len(turns) == 0 {
			err = protocol.ErrNotFound.With("", "nothing was said yet that could be taken back")
		}
		return Outcome{List: turnList(turns)}, err
	}
	w, err := s.at.Near.Back(ctx, s.run(), b)
	switch {
	case errors.Is(err, protocol.ErrRunLive):
		return Outcome{}, protocol.ErrRunLive.With("", "the agent works, here or at another screen: Esc stops it, then /%s", c.Action)
	case err != nil:
		return Outcome{}, err
	case w.Run == "":
		return refused(c, w), nil
	}
	return Outcome{Moved: true, Text: toldBack(c, w), Line: w.Text}, s.goTo(ctx, w.Run)
}

// turnList lets the person choose to which turn the conversation goes back, the newest at first.
func turnList(turns []api.Turn) *List {
	l := &List{Title: "Back to before a message, with the files", Hint: "choose · Enter takes back all from it on", At: len(turns) - 1, Do: Rewind}
	for i, x := range turns {
		l.Rows = append(l.Rows, Row{Value: fmt.Sprint(i + 1), Text: fmt.Sprintf("%3d  %s  %s", i+1, x.Step, plain.Line(x.Text, 300))})
	}
	return l
}

// toldBack tells what went back, or forth.
func toldBack(c Command, w api.WentBack) string {
	var b strings.Builder
	switch {
	case c.Action == Redo:
		b.WriteString("the conversation is as before the undo")
	default:
		b.WriteString("took back all from " + w.Step + " on")
	}
	switch {
	case w.Left != "":
		b.WriteString("; the files stay as they are: " + w.Left)
	default:
		b.WriteString(", with the files (" + protocol.Plural(len(w.Files.Changed), "path") + ")")
	}
	if c.Action != Redo {
		b.WriteString("; /redo brings it back")
	}
	if n := len(w.Files.Kept); n > 0 {
		fmt.Fprintf(&b, "; %s that nothing had recorded: wf restore %s --tree %s PATH brings it back", protocol.Plural(n, "path"), w.Run, w.Files.Undo)
	}
	if n := len(w.Files.Conflicts); n > 0 {
		fmt.Fprintf(&b, "; left alone: %s (%s)", w.Files.Conflicts[0].Path, w.Files.Conflicts[0].Why)
		if n > 1 {
			fmt.Fprintf(&b, " and %d more", n-1)
		}
	}
	return b.String()
}

// refused tells why neither the conversation nor the files have changed.
func refused(c Command, w api.WentBack) Outcome {
	var b strings.Builder
	if w.Files.State == protocol.RestoreAborted {
		b.WriteString("These files were changed while the files went back. All others are as they were, and so is the conversation:\n\n")
	} else {
		b.WriteString("These files hold what nothing has recorded. So neither the files nor the conversation were changed:\n\n")
	}
	for _, x := range w.Files.Conflicts {
		b.WriteString("  " + x.Path + ": " + x.Why + "\n")
	}
	line := "/" + string(c.Action)
	if c.Arg != "" && !strings.Contains(c.Arg, "--force") {
		line += " " + c.Arg
	}
	b.WriteString("\n" + line + " --force goes all the same: what lies there is kept in the store and replaced, and the chat tells how it comes back.")
	return Outcome{Dialog: true, Title: "Nothing was changed", Text: b.String()}
}

// ToldSettled tells what was ended that another process had begun; "" is nothing.
func ToldSettled(v *api.FilesRestored) string {
	switch {
	case v == nil:
		return ""
	case v.State == protocol.RestoreAborted && len(v.Conflicts) > 0:
		return fmt.Sprintf("going back was interrupted, and then met %s: %s. It was taken back, and the conversation stays", v.Conflicts[0].Path, v.Conflicts[0].Why)
	case v.State == protocol.RestoreAborted:
		return "going back was interrupted, and was taken back"
	case v.Next != "":
		return "going back was interrupted, and was ended: the conversation goes on in run " + string(v.Next)
	}
	text := "restoring files of run " + string(v.Run) + " was interrupted, and was ended"
	if n := len(v.Conflicts); n > 0 {
		text += fmt.Sprintf("; left alone: %s (%s)", v.Conflicts[0].Path, v.Conflicts[0].Why)
	}
	return text
}
