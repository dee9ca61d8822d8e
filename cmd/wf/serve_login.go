package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"wf/hub/api"
	"wf/hub/reply"
	"wf/protocol"
)

// errNoDaemon says that no daemon of the store could be asked.
var errNoDaemon = &protocol.Error{Code: "no_daemon", Message: "no wf serve answers", Hint: "wf serve starts one"}

// login has the daemon of the store make a code, and prints the address with it.
func (a *app) login(ctx context.Context, f serveFlags) error {
	dir, _, err := a.storeDir()
	if err != nil {
		return err
	}
	var code api.Code
	if err := callDaemon(ctx, socketPath(dir), http.MethodPost, "/v1/codes", &code); err != nil {
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

// askDaemon is how long a daemon may take to answer a command.
const askDaemon = 5 * time.Second

// callDaemon asks the daemon behind a socket. Without one the error wraps errNoDaemon.
func callDaemon(ctx context.Context, socket, method, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askDaemon)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
	r, err := http.NewRequestWithContext(ctx, method, "http://wf"+path, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	var op *net.OpError
	if errors.As(err, &op) {
		return fmt.Errorf("socket %s: %w", socket, errNoDaemon)
	}
	if err != nil {
		return fmt.Errorf("socket %s: %w", socket, err)
	}
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return fmt.Errorf("socket %s: %w", socket, err)
	}
	if answer.StatusCode >= 300 {
		var f reply.Failure
		if err := json.NewDecoder(bytes.NewReader(body)).Decode(&f); err != nil {
			return fmt.Errorf("%s %s: %s", method, path, answer.Status)
		}
		return &protocol.Error{Code: f.Code, Message: f.Message, Hint: f.Fix}
	}
	return json.Unmarshal(body, into)
}
