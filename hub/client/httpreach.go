package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"wf/protocol"
)

// ErrUnreachable is a server that does not answer.
var ErrUnreachable = &protocol.Error{Code: "server_unreachable", Message: "the server does not answer", Hint: "is wf serve or wf hub running there?"}

// ErrNotReady is a server that answers, and does not take requests: it starts, ends, or cannot read its store.
var ErrNotReady = &protocol.Error{Code: "not_ready", Message: "the server does not take requests", Hint: "look again in a moment; with --log-level debug its log says why"}

// Reach reads the address of a server: http://host:port on this machine, https://host[:port],
// or unix:PATH. It returns what the paths of the API are appended to, and a client that speaks
// to that address alone: it follows no redirect, so that a token goes nowhere else. Plain HTTP
// to another machine is an error wrapping protocol.ErrInsecure, what is no address one wrapping
// protocol.ErrUsage. secure is the TLS of https; nil is the system's.
func Reach(address string, secure *tls.Config) (base string, via *http.Client, err error) {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		IdleConnTimeout:     time.Minute,

		ExpectContinueTimeout: 5 * time.Second, // of an upload, see upload
	}
	via = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if path, ok := strings.CutPrefix(address, "unix:"); ok && path != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
		return "http://wf", via, nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", nil, notAnAddress(address, "want http://127.0.0.1:PORT, https://HOST or unix:PATH")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", nil, notAnAddress(u.Redacted(), "credentials do not belong into it, give a token file")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "", nil, fmt.Errorf("%s is another machine, and plain HTTP shows it the token on the way: want https: %w", address, protocol.ErrInsecure)
	case u.Scheme == "https":
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS13}
		if secure != nil {
			transport.TLSClientConfig = secure.Clone()
		}
		transport.Proxy = http.ProxyFromEnvironment
	}
	return strings.TrimRight(u.String(), "/"), via, nil
}

func notAnAddress(address, want string) error {
	return fmt.Errorf("%q is no address of a server: %s: %w", address, want, protocol.ErrUsage)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// unreachable is an error of a connection that was not made, without the layers that tried.
func unreachable(err error) error {
	if layers, ok := errors.AsType[*url.Error](err); ok {
		err = layers.Err
	}
	if errors.Is(err, ErrForeignServer) {
		return err // it is there, and is not spoken to
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// Refusal is the error that a server answered with, found in what its answer holds; err is what
// the connection says, and is used where there was no answer.
func Refusal(answer *http.Response, err error) error {
	if answer == nil {
		return unreachable(err)
	}
	if failure := failureOf(answer); failure != nil {
		return failure
	}
	return err
}

// maxFailure is how much of an answer is read for the error in it.
const maxFailure = 64 << 10

// failureOf reads wf.error/v1; nil is an answer that is none.
func failureOf(answer *http.Response) error {
	if answer.StatusCode < 400 && answer.StatusCode != http.StatusSwitchingProtocols && answer.StatusCode/100 == 2 {
		return nil
	}
	var f struct {
		Schema, Code, Message, Fix string
		Hint                       *string // servers before this field have advice for terminals in Fix
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxFailure))
	if json.Unmarshal(body, &f) == nil && f.Schema == "wf.error/v1" && f.Code != "" {
		return &protocol.Error{Code: f.Code, Message: f.Message, Hint: *cmp.Or(f.Hint, &f.Fix)}
	}
	if f.Schema == "wf.ready/v1" {
		return ErrNotReady
	}
	return errors.Join(&protocol.Error{Code: "bad_answer", Message: "the server answered " + answer.Status + ", and not as wf does",
		Hint: "is the address right?"}, err)
}
