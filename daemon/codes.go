package daemon

import (
	"time"
	"wf/hub/guard"
	"wf/hub/server"
)

// withCode is an address that logs a browser in: what follows # is never sent or logged.
func withCode(url, code string) string { return url + "/#code=" + code }

// CodeFor makes one-time codes for browsers that open one of the listeners.
func CodeFor(keys *guard.Keys, all []*Listener) func() (server.Code, error) {
	return func() (server.Code, error) {
		code, err := keys.NewCode()
		out := server.Code{Schema: "wf.code/v1", Code: code, Expires: time.Now().Add(guard.CodeLife).UTC().Format(time.RFC3339), URLs: []string{}}
		for _, d := range all {
			if d.Guard.Keys != nil {
				out.URLs = append(out.URLs, withCode(d.URL, code))
			}
		}
		return out, err
	}
}

// Address is where a server listens, as it writes it for programs.
type Address struct {
	URL  string `json:"url"`  // unix:PATH, http:// or https://
	Open string `json:"open"` // with a one-time code, for a browser; "" for a socket
}

// Addresses are where listeners listen, each with a code of its own.
func Addresses(keys *guard.Keys, all []*Listener) ([]Address, error) {
	out := []Address{}
	for _, d := range all {
		l := Address{URL: d.URL}
		if d.Guard.Keys != nil {
			code, err := keys.NewCode()
			if err != nil {
				return nil, err
			}
			l.Open = withCode(d.URL, code)
		}
		out = append(out, l)
	}
	return out, nil
}
