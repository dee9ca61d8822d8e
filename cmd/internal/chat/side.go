package chat

import (
	"cmp"
	"fmt"

	"wf/cmd/internal/plain"
)

// sideLines are the tasks in a column: the current one, its state, how many are completed, and
// those before.
func sideLines(tasks TaskList, height int) []string {
	out := []string{" " + styleQuestion.Render("Task"), ""}
	text := func(s string, style func(...string) string) {
		for _, l := range plain.Wrap(s, sideWidth-2) {
			out = append(out, " "+style(l))
		}
	}
	current := tasks.Current()
	if current != nil {
		text(taskMarks[current.Status]+" "+cmp.Or(current.Goal, current.ID), styleQuestion.Render)
		if current.State != "" {
			out = append(out, "")
			text(current.State, plainStyle)
		}
	} else {
		text("none at work", styleDim.Render)
	}
	out = append(out, "")
	text(fmt.Sprintf("✓ %d completed", tasks.Done()), styleWaits.Render)
	out = append(out, "")
	for i := len(tasks) - 1; i >= 0 && len(out) < height; i-- {
		if x := tasks[i]; x != current {
			out = append(out, " "+styleDim.Render(plain.Cut(taskMarks[x.Status]+" "+plain.Line(cmp.Or(x.Goal, x.ID), sideWidth), sideWidth-2, "…")))
		}
	}
	if len(out) > height {
		out = out[:height]
	}
	if n := len(tasks); n > 1 && height > 0 && len(out) == height {
		out[height-1] = " " + styleDim.Render("… /task browses all")
	}
	return out
}
