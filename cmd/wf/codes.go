package main

import (
	"context"
	"fmt"
	"time"

	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/server"
)

// withCode is an address that logs a browser in: what follows # is never sent or logged.
func withCode(url, code string) string { return url + "/#code=" + code }

// codeFor makes one-time codes for browsers that open one of the doors.
func codeFor(keys *guard.Keys, doors []*door) func() (server.Code, error) {
	return func() (server.Code, error) {
		code, err := keys.NewCode()
		out := server.Code{Schema: "wf.code/v1", Code: code, Expires: time.Now().Add(guard.CodeLife).UTC().Format(time.RFC3339), URLs: []string{}}
		for _, d := range doors {
			if d.guard.Keys != nil {
				out.URLs = append(out.URLs, withCode(d.url, code))
			}
		}
		return out, err
	}
}

// listenJSON is where a server listens, as it writes it for programs.
type listenJSON struct {
	URL  string `json:"url"`  // unix:PATH, http:// or https://
	Open string `json:"open"` // with a one-time code, for a browser; "" for a socket
}

// listening is where the doors are, each with a code of its own.
func listening(keys *guard.Keys, doors []*door) ([]listenJSON, error) {
	out := []listenJSON{}
	for _, d := range doors {
		l := listenJSON{URL: d.url}
		if d.guard.Keys != nil {
			code, err := keys.NewCode()
			if err != nil {
				return nil, err
			}
			l.Open = withCode(d.url, code)
		}
		out = append(out, l)
	}
	return out, nil
}

// askDaemon is how long a server may take to make a code.
const askDaemon = 5 * time.Second

// newCode has the server behind api make a code, and prints what to open.
func (a *app) newCode(ctx context.Context, server *client.API) error {
	defer server.Close()
	ctx, cancel := context.WithTimeout(ctx, askDaemon)
	defer cancel()
	code, err := server.NewCode(ctx)
	if err != nil {
		return err
	}
	if a.asJSON() {
		return a.answer(map[string]any{"schema": "wf.login/v1", "open": code.URLs, "expires": code.Expires})
	}
	for _, u := range code.URLs {
		if _, err := fmt.Fprintln(a.out, u); err != nil {
			return err
		}
	}
	return nil
}
