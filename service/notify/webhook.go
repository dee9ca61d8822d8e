package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"wf/agentkit/sandbox"
	"wf/protocol"
	"wf/roles"
)

// Bounds of a webhook, whose receiver may stall or be hostile.
const (
	webhookTime = 10 * time.Second // until the end of the answer
	answerMax   = 64 << 10         // bytes of it that are read
)

// A failure is an attempt that did not work.
type failure struct {
	error
	after time.Duration // the receiver wants to be left alone for so long; 0: it does not say
	final bool          // there is no use in another attempt
}

// webhook posts notifications to one address. It follows no redirect, uses no proxy, and dials only addresses that
// were looked at.
type webhook struct {
	sink   protocol.Sink
	client *http.Client
	getenv func(string) (string, bool)
	now    func() time.Time
}

func newWebhook(sink protocol.Sink, getenv func(string) (string, bool), now func() time.Time) (*webhook, error) {
	e, named, err := sink.Endpoint()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return sandbox.Dial(ctx, e, named) },
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: answerMax,
		IdleConnTimeout:        time.Minute,
		MaxIdleConnsPerHost:    inFlight,
	}
	return &webhook{sink, &http.Client{Transport: transport, Timeout: webhookTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, getenv, now}, nil
}

func (w *webhook) send(ctx context.Context, m *Message, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.sink.Webhook, bytes.NewReader(body))
	if err != nil {
		return err
	}
	at := strconv.FormatInt(w.now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "wf")
	req.Header.Set(protocol.WebhookIDHeader, m.ID)
	req.Header.Set(protocol.WebhookTimeHeader, at)
	if m.caused.Run != "" {
		req.Header.Set(protocol.CausedByHeader, m.caused.String())
	}
	if w.sink.Secret != "" {
		secret, ok := w.getenv(w.sink.Secret)
		if !ok {
			return fmt.Errorf("the secret %s is not set in the environment of this process", w.sink.Secret)
		}
		roles.Conceal(w.sink.Secret, secret)
		key, err := protocol.WebhookKey(secret)
		if err != nil {
			return fmt.Errorf("%s: %w", w.sink.Secret, err)
		}
		req.Header.Set(protocol.WebhookSignatureHeader, protocol.SignWebhook(key, m.ID, at, body))
	}
	resp, err := w.client.Do(req)
	if err != nil {
		if in := (*url.Error)(nil); errors.As(err, &in) {
			err = in.Err // the address is known
		}
		return fmt.Errorf(saidNothing+"%w", err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, answerMax))
	if resp.StatusCode/100 == 2 {
		return nil // what else it says is of no account, nor whether it says it to the end
	}
	status := strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", http.StatusText(resp.StatusCode))) // and not in the words of the receiver
	if err != nil {
		return fmt.Errorf(saidStatus+"%s: it broke off: %w", status, err)
	}
	text := fmt.Errorf(saidStatus+"%s: %s", status, brief(string(said)))
	switch {
	case resp.StatusCode/100 == 3:
		text = fmt.Errorf(saidStatus+"%s: redirects are not followed", status)
	case resp.StatusCode == http.StatusGone:
		return failure{text, 0, true}
	}
	seconds, err := strconv.Atoi(strings.TrimSpace(resp.Header.Get("Retry-After")))
	if err != nil {
		return text
	}
	return failure{text, min(time.Duration(max(seconds, 0))*time.Second, lastPause), false}
}

// How errors begin behind which the receiver, or the command, is quoted.
const (
	saidStatus  = "it answered "
	saidNothing = "there was no answer: "
	saidExit    = "the command ended with "
)

// brief is the beginning of what a receiver says, as it is kept: one line, without keys.
func brief(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(roles.HideKeys(s), "�")), " ")
	return s[:roles.CutRunes(s, errorMax)]
}

// errorMax is how much of an error is kept, in bytes.
const errorMax = 300
