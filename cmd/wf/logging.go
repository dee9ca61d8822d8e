package main

import (
	"log/slog"
	"strings"

	"github.com/spf13/pflag"

	"wf/protocol"
)

// logging is how a server writes what it has to tell: to stderr, one line each.
type logging struct{ format, level string }

func (l *logging) flags(f *pflag.FlagSet) {
	f.StringVar(&l.format, "log", "text", "how the log on stderr is written: text or json")
	f.StringVar(&l.level, "log-level", "", "least that is logged: debug, info, warn or error (default info, with -q error)")
}

// open makes the log. With json all that the process tells is a line of it, so that stderr can be read by a program.
func (l *logging) open(a *app) (*slog.Logger, error) {
	level := slog.LevelInfo
	if a.Quiet {
		level = slog.LevelError
	}
	if l.level != "" {
		if err := level.UnmarshalText([]byte(l.level)); err != nil || strings.ContainsAny(l.level, "+-") {
			return nil, protocol.ErrUsage.With("", "--log-level %q: want debug, info, warn or error", l.level)
		}
	}
	o := &slog.HandlerOptions{Level: level}
	switch l.format {
	case "text":
		return slog.New(slog.NewTextHandler(a.Err, o)), nil
	case "json":
		log := slog.New(slog.NewJSONHandler(a.Err, o))
		a.Tell = func(text string) {
			text = strings.TrimSpace(text)
			if warning, ok := strings.CutPrefix(text, "warning: "); ok {
				log.Warn(warning)
			} else {
				log.Info(text)
			}
		}
		return log, nil
	}
	return nil, protocol.ErrUsage.With("", "--log %q: want text or json", l.format)
}
