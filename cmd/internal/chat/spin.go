package chat

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"
)

// spin is the sign of life while the run goes on.
type spin struct {
	on    bool // a tick is on its way
	frame int
	since time.Time // when the run began to go on
	now   time.Time
}

// tick turns the sign.
type tick struct{}

const turnEvery = 120 * time.Millisecond

var signs = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// next asks for a tick while the run goes on.
func (s *spin) next(running bool) tea.Cmd {
	if !running || s.on {
		return nil
	}
	s.on = true
	return tea.Tick(turnEvery, func(time.Time) tea.Msg { return tick{} })
}

func (s *spin) turn() {
	s.on, s.frame, s.now = false, s.frame+1, time.Now()
}

// from begins to count, from an event of the past (in unix microseconds) or, for 0, from now.
// What another machine's clock puts in the future is now.
func (s *spin) from(ts int64) {
	s.now = time.Now()
	s.since = s.now
	if at := time.UnixMicro(ts); ts > 0 && at.Before(s.now) {
		s.since = at
	}
}

// String is the sign with the time that has passed.
func (s *spin) String() string {
	sign := string(signs[s.frame%len(signs)])
	if d := s.now.Sub(s.since); d >= time.Minute {
		return fmt.Sprintf("%s running %dm%02ds", sign, int(d.Minutes()), int(d.Seconds())%60)
	} else if d >= time.Second {
		return fmt.Sprintf("%s running %ds", sign, int(d.Seconds()))
	}
	return sign + " running"
}
