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
	ink := p.Out.Paint()
	fmt.Fprintf(p.Out, "%s wf serve  %s  store %s\n", ink.Cyan("●"), ink.Bold(s.Name), s.Store)
	for _, l := range s.Listen {
		if l.Open == "" {
			fmt.Fprintf(p.Out, "  %s %s\n", ink.Dim("socket"), strings.TrimPrefix(l.URL, "unix:"))
			continue
		}
		fmt.Fprintf(p.Out, "  %s   %s\n", ink.Dim("open"), l.Open)
	}
	if s.TokenFile != "" {
		fmt.Fprintf(p.Out, "  %s  %s\n", ink.Dim("token"), s.TokenFile)
	} else {
		fmt.Fprintf(p.Out, "  %s   wf serve --listen %s opens a page for browsers\n", ink.Dim("more"), page)
	}
	_, err := fmt.Fprintf(p.Out, "  %s\n", ink.Dim("Ctrl-C suspends what runs; the next start goes on"))
	return err
}

// ShowHub writes where a hub listens, and how workers join it.
func (p *Printer) ShowHub(h *api.HubServing) error {
	if p.AsJSON() {
		return p.answerLine(h)
	}
	ink := p.Out.Paint()
	fmt.Fprintf(p.Out, "%s wf hub  %s  data %s\n", ink.Cyan("●"), ink.Bold(h.Name), h.Data)
	for _, l := range h.Listen {
		command := "wf serve --hub " + l.URL
		if l.Open != "" {
			fmt.Fprintf(p.Out, "  %s   %s\n", ink.Dim("open"), l.Open)
			command += " --hub-token-file " + h.AgentToken
		}
		fmt.Fprintf(p.Out, "  %s  %s\n", ink.Dim("agent"), command)
	}
	_, err := fmt.Fprintf(p.Out, "  %s  %s\n", ink.Dim("token"), h.TokenFile)
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
