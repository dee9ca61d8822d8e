package doctor

import (
	"fmt"
	"strings"
	"time"

	"wf/agentkit/config"
	"wf/agentkit/ratelimit"
	"wf/api"
	"wf/protocol"
	"wf/service/compose"
)

// checkLimits tells how full the windows of the accounts with limits are, and which processes have calls in flight.
func checkLimits(loaded *config.Loaded) (out []api.Checkup) {
	for _, p := range compose.Providers(loaded) {
		c := api.Checkup{Name: "limits " + p.Name + "/…", State: "ok"}
		account, err := loaded.Account(p.Name)
		if err == nil && account == nil {
			continue
		}
		if err == nil {
			c.Text, err = window(account)
		}
		if err != nil {
			c = bad(c, err)
			if account != nil && c.Fix == "" {
				c.Fix = "remove " + account.Path() + "; calls then wait for no window but their own"
			}
		}
		out = append(out, c)
	}
	return out
}

// window is how full the window of an account is.
func window(a *ratelimit.Account) (string, error) {
	s, err := a.Look()
	if err != nil {
		return "", err
	}
	parts := []string{fmt.Sprintf("account %s", a.ID)}
	of := func(n, most int64, what string) {
		if most > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", n, protocol.Plural(int(most), what)))
		}
	}
	if !s.Unknown {
		of(int64(s.Requests), int64(a.Limits.Requests), "request")
		of(s.Tokens, a.Limits.Tokens, "token")
	}
	text := strings.Join(parts, ", ")
	if s.Unknown {
		text += fmt.Sprintf(", the window counts as full for up to %v, since its file was damaged", ratelimit.Window)
	} else if len(parts) > 1 {
		text += " in the last minute"
	}
	if a.Limits.InFlight > 0 {
		text += fmt.Sprintf(", %d of %d in flight", s.InFlight, a.Limits.InFlight)
	}
	for _, p := range s.Flying {
		text += fmt.Sprintf("; process %d has %s in flight", p.PID, protocol.Plural(p.N, "call"))
	}
	for _, p := range s.Waiting {
		text += fmt.Sprintf("; process %d waits", p.PID)
	}
	if s.Closed > 0 {
		text += fmt.Sprintf("; the provider asked to wait, for %v more", s.Closed.Round(time.Second))
	}
	return text, nil
}
