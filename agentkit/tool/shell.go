package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"wf/protocol"
)

// Bounds of a command.
const (
	StdoutMax      = 20_000 // characters
	StderrMax      = 5_000
	DefaultTimeout = 120 * time.Second
	MaxTimeout     = 30 * time.Minute
)

// grace is how long a stopped command has between SIGTERM and SIGKILL, and how long its output
// is still read after it has ended.
const grace = time.Second

// allowed are the variables that a command inherits; everything else is left out, keys of
// models above all.
var allowed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "TMPDIR",
	"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOENV", "GOPROXY", "GONOPROXY",
	"GOPRIVATE", "GOSUMDB", "GONOSUMDB", "GONOSUMCHECK", "GOINSECURE", "GOTOOLCHAIN", "GOWORK", "GO111MODULE", "CGO_ENABLED", "GOMAXPROCS",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE",
	"XDG_CACHE_HOME", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NODE_PATH", "npm_config_cache", "VIRTUAL_ENV", "PIP_CACHE_DIR",
}

func shell() Tool {
	return Tool{
		Name:        "shell",
		Description: text("shell"),
		Parameters: protocol.JSON(`{"type":"object","required":["command"],"additionalProperties":false,"properties":{` +
			`"command":{"type":"string","description":"what sh -c runs"},` +
			`"timeout":{"type":"integer","minimum":1,"maximum":1800,"description":"seconds"}}}`),
		Policy: Ask,
		Run: func(ctx context.Context, at Workspace, raw json.RawMessage) (Result, error) {
			var args struct {
				Command string `json:"command"`
				Timeout int64  `json:"timeout"`
			}
			if err := decode(raw, &args, "command"); err != nil {
				return failed("%v", err), nil
			}
			timeout := DefaultTimeout
			if args.Timeout > 0 {
				timeout = min(time.Duration(min(args.Timeout, 1<<20))*time.Second, MaxTimeout)
			}
			return command(ctx, at, args.Command, timeout)
		},
	}
}

// command runs a command in its own process group and ends the whole group with it.
func command(ctx context.Context, at Workspace, line string, timeout time.Duration) (Result, error) {
	if strings.IndexByte(line, 0) >= 0 {
		return failed("the command holds a NUL byte"), nil
	}
	limited, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	stdout, stderr := newEnds(StdoutMax), newEnds(StderrMax)
	cmd := exec.CommandContext(limited, "sh", "-c", line)
	cmd.Dir = at.Dir
	cmd.Env = environ(at)
	cmd.Stdout, cmd.Stderr = watched(at, "stdout", stdout), watched(at, "stderr", stderr)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The command is told to die with the thread that starts it (see dieWithParent).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dieWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace

	if err := cmd.Start(); err != nil {
		return failed("the command could not be started: %v", err), nil
	}
	err := cmd.Wait()
	// What the command left behind ends with it; ESRCH says that nothing was.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}

	var exit *exec.ExitError
	r := Result{}
	switch {
	case limited.Err() != nil:
		r = failed("the command was stopped after %v", timeout)
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		r.Content = "exit code: 0"
	case errors.As(err, &exit):
		r.Content = fmt.Sprintf("exit code: %d", exitCode(exit.ProcessState))
	default:
		r = failed("the command failed: %v", err)
	}
	r.Content += section(at, "stdout", stdout) + section(at, "stderr", stderr)
	return r, nil
}

// exitCode is the exit status as a shell tells it: 128+n after signal n.
func exitCode(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}

func environ(at Workspace) []string {
	var env []string
	for _, name := range allowed {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, at.Environ...)
}

func section(at Workspace, name string, e *ends) string {
	s := strings.TrimRight(e.text(at.clean), "\n")
	if s == "" {
		return ""
	}
	return "\n" + name + ":\n" + s
}

// ends keeps the beginning and the end of a stream in bounded memory.
type ends struct {
	max  int    // characters of the text
	keep int    // bytes of head, and of tail
	head []byte // first keep bytes
	tail []byte // last keep bytes, up to twice as many between trims
	gone int64  // bytes between them
}

// newEnds keeps four bytes for each character, so that one is never missing for want of bytes.
func newEnds(max int) *ends { return &ends{max: max, keep: 4 * max} }

func (e *ends) Write(p []byte) (int, error) {
	n := len(p)
	if room := e.keep - len(e.head); room > 0 {
		take := min(room, len(p))
		e.head, p = append(e.head, p[:take]...), p[take:]
	}
	for len(p) > 0 {
		take := min(len(p), e.keep)
		e.tail, p = append(e.tail, p[:take]...), p[take:]
		if over := len(e.tail) - e.keep; over > 0 {
			e.gone += int64(over)
			e.tail = append(e.tail[:0], e.tail[over:]...)
		}
	}
	return n, nil
}

// text is the stream cut to max characters, secrets hidden first: two thirds from its
// beginning, one from its end, where errors tend to stand.
func (e *ends) text(clean func(string) string) string {
	if e.gone == 0 {
		s := clean(plain(append(bytes.Clone(e.head), e.tail...)))
		runes := utf8.RuneCountInString(s)
		if runes <= e.max {
			return s
		}
		return e.join(s, s, int64(runes-e.max), "characters")
	}
	head, tail := clean(plain(e.head)), clean(plain(e.tail))
	return e.join(head, tail, e.gone+int64(len(e.head)+len(e.tail)-e.max), "bytes")
}

func (e *ends) join(head, tail string, missing int64, unit string) string {
	last := e.max / 3
	return fmt.Sprintf("%s\n…[%d %s left out]…\n%s", firstRunes(head, e.max-last), missing, unit, lastRunes(tail, last))
}

// plain is output as text: invalid UTF-8 replaced, CRLF as LF, no NUL bytes.
func plain(b []byte) string {
	s := strings.ToValidUTF8(string(b), "�")
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\x00", "")
}

func firstRunes(s string, n int) string {
	for at := range s {
		if n == 0 {
			return s[:at]
		}
		n--
	}
	return s
}

func lastRunes(s string, n int) string {
	at := len(s)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[at:]
}

// watched shows output to live watchers too, whole lines at a time so that no secret is torn.
func watched(at Workspace, kind string, to io.Writer) io.Writer {
	if at.Watch == nil {
		return to
	}
	return &watcher{at: at, kind: kind, to: to}
}

type watcher struct {
	at   Workspace
	kind string
	to   io.Writer
	line []byte
}

// lineMax is the longest line that is shown live.
const lineMax = 8 << 10

func (w *watcher) Write(p []byte) (int, error) {
	w.line = append(w.line, p...)
	if i := bytes.LastIndexByte(w.line, '\n'); i >= 0 {
		w.at.Watch(w.kind, w.at.clean(plain(w.line[:i+1])))
		w.line = append(w.line[:0], w.line[i+1:]...)
	}
	if len(w.line) > lineMax {
		w.line = w.line[:0]
	}
	return w.to.Write(p)
}
