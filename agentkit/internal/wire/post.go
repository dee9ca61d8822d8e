package wire

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"wf/agentkit/model"
	"wf/agentkit/ratelimit"
	"wf/protocol"
	"wf/roles"
)

// UserAgent is all that a server learns of the program that calls it.
const UserAgent = "wf"

// FromEnvironment reads PROVIDER_BASE_URL and PROVIDER_API_KEY. With neither it is an error wrapping
// protocol.ErrModel: what, a model, needs a key, or a URL of a server, or another one in its place.
func FromEnvironment(provider, what, server, other string) (base, key string, err error) {
	base, key = os.Getenv(provider+"_BASE_URL"), os.Getenv(provider+"_API_KEY")
	roles.Conceal(provider+"_API_KEY", key)
	if base == "" && key == "" {
		return "", "", &model.Error{Class: model.Unavailable, Err: protocol.ErrModel,
			Message: fmt.Sprintf("the %s needs a key. Fixes: set %s_API_KEY; or set %[2]s_BASE_URL to a server %[3]s; or name %[4]s", what, provider, server, other)}
	}
	return base, key, nil
}

// Base reads the base URL of the server of a model. what is how the model is called, want how such a URL
// looks, and variable where the user may have set it.
func Base(what, base, want, variable string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, model.Unusable(what, "%q is no base URL (want %s; look at %s)", base, want, variable)
	}
	return u, nil
}

// Below is the URL of path below base. The query of base is left out.
func Below(base *url.URL, path string) string {
	dir := *base
	if !strings.HasSuffix(dir.Path, "/") {
		dir.Path += "/"
		if dir.RawPath != "" {
			dir.RawPath += "/"
		}
	}
	return dir.ResolveReference(&url.URL{Path: path}).String()
}

// Public is a URL without a user and a password.
func Public(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// Post sends JSON to a URL, once the limits of the account let it. A header of the caller replaces the one that each
// request has; one without a value is not sent. The response has any status, and its body is unread; done is called
// with how it ended.
func (c Call) Post(ctx context.Context) (res *http.Response, done func(ratelimit.Result), err error) {
	for {
		a, err := c.ask(ctx)
		if err != nil {
			return nil, nil, err
		}
		res, err := a.post(ctx, c.URL, c.Body, c.Header)
		if err == nil {
			return res, a.done, nil
		}
		if a.done(ratelimit.Result{Used: -1}); !a.stale(ctx, err) {
			return nil, nil, err
		}
	}
}

// request is the request that is sent.
func request(ctx context.Context, to string, body []byte, header map[string]string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", UserAgent)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Idempotency-Key", Key(body))
	for name, value := range header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

// Bearer is the header Authorization for a key, "" for none.
func Bearer(key string) string {
	if key == "" {
		return ""
	}
	return "Bearer " + key
}
