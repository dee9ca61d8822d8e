package notify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
	"unicode"
)

// desktopTime is how long the program of the desktop may take.
const desktopTime = 10 * time.Second

// A desktop shows notifications by the program of the system, which is started by its fixed path, in /.
type desktop struct{}

// desktopPath is the program of this system; an error says that there is none.
func desktopPath() (string, error) {
	path := "/usr/bin/notify-send"
	if runtime.GOOS == "darwin" {
		path = "/usr/bin/osascript"
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", errors.New("desktop notifications want " + path + ", and it is not there")
	}
	return path, nil
}

func (desktop) send(ctx context.Context, m *Message, _ []byte) error {
	path, err := desktopPath()
	if err != nil {
		return err
	}
	title, text := shownOn(m)
	args := []string{"--app-name=wf", "--", title, escaped(text)}
	if runtime.GOOS == "darwin" {
		args = []string{"-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run", "--", title, text}
	}
	ctx, stop := context.WithTimeout(ctx, desktopTime)
	defer stop()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	for _, name := range []string{"HOME", "USER", "LANG", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", path, err, brief(string(out)))
	}
	return nil
}

// shownOn is what a desktop shows of a notification.
func shownOn(m *Message) (title, text string) {
	what := map[string]string{"waiting": "waits for you", "failed": "failed", "done": "is done", "limit": "reached a limit"}[string(m.On)]
	switch {
	case m.On == "failed" && m.Status == "suspended":
		what = "is suspended by an error"
	case m.Reminder > 0:
		what = "waits for you still"
	case m.Escalated > 0:
		what = "waits for you: there was no answer in time"
	}
	title = m.Workflow + " " + what
	more := []string{m.Title, m.Question, "wf show " + string(m.Run)}
	if m.Trigger != "" {
		title = fmt.Sprintf("the %s of %s is %s", m.Trigger, m.Workflow, m.Status)
		more = []string{m.Problem, m.Fix}
	}
	for _, s := range more {
		if s != "" {
			text += s + "\n"
		}
	}
	return plain(title), plain(strings.TrimSpace(text))
}

// plain leaves out what does not print, and most of what is long.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	if r := []rune(s); len(r) > 300 {
		s = string(r[:300]) + "…"
	}
	return s
}

// escaped is a text for notify-send, which reads it as markup.
func escaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
