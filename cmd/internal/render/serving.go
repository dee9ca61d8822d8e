package render

import (
	"fmt"
	"strings"

	"wf/api"
)

// ShowServing writes where a daemon listens. page is the address at which one opens a page for browsers.
func (p *Printer) ShowServing(s *api.Serving, page string) error {
	if p.AsJSON() {
		return p.answerLine(s)
	}
	fmt.Fprintf(p.Out, "%s wf serve  %s  store %s\n", p.Out.Cyan("●"), p.Out.Bold(s.Name), s.Store)
	for _, l := range s.Listen {
		socket, is := strings.CutPrefix(l.URL, "unix:")
		switch {
		case is:
			fmt.Fprintf(p.Out, "  %s %s\n", p.Out.Dim("socket"), socket)
		case l.Open == "": // no token is the owner's, and the log says so
			fmt.Fprintf(p.Out, "  %s     %s\n", p.Out.Dim("at"), l.URL)
		default:
			fmt.Fprintf(p.Out, "  %s   %s\n", p.Out.Dim("open"), l.Open)
		}
	}
	if s.TokenFile != "" {
		fmt.Fprintf(p.Out, "  %s  %s\n", p.Out.Dim("token"), s.TokenFile)
	} else {
		fmt.Fprintf(p.Out, "  %s   wf serve --listen %s opens a page for browsers\n", p.Out.Dim("more"), page)
	}
	_, err := fmt.Fprintf(p.Out, "  %s\n", p.Out.Dim("Ctrl-C suspends what runs; the next start goes on"))
	return err
}

// ShowHub writes where a hub listens, and how workers join it.
func (p *Printer) ShowHub(h *api.HubServing) error {
	if p.AsJSON() {
		return p.answerLine(h)
	}
	fmt.Fprintf(p.Out, "%s wf hub  %s  data %s\n", p.Out.Cyan("●"), p.Out.Bold(h.Name), h.Data)
	for _, l := range h.Listen {
		command := "wf serve --hub " + l.URL
		if l.Open != "" {
			fmt.Fprintf(p.Out, "  %s   %s\n", p.Out.Dim("open"), l.Open)
		}
		if !strings.HasPrefix(l.URL, "unix:") {
			command += " --hub-token-file " + h.AgentToken
		}
		fmt.Fprintf(p.Out, "  %s  %s\n", p.Out.Dim("agent"), command)
	}
	_, err := fmt.Fprintf(p.Out, "  %s  %s\n", p.Out.Dim("token"), h.TokenFile)
	return err
}

// ShowCode writes the addresses that log a browser in, with the time until when they do.
func (p *Printer) ShowCode(urls []string, expires string) error {
	if p.AsJSON() {
		return p.Answer(map[string]any{"schema": "wf.login/v1", "open": urls, "expires": expires})
	}
	for _, u := range urls {
		if _, err := fmt.Fprintln(p.Out, u); err != nil {
			return err
		}
	}
	return nil
}
