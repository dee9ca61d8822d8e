package daemon

import (
	"time"

	"wf/api"
	"wf/hub/guard"
)

// withCode is an address that logs a browser in: what follows # is never sent or logged.
func withCode(url, code string) string { return url + "/#code=" + code }

// CodeFor makes one-time codes for browsers that open one of the listeners.
func CodeFor(keys *guard.Keys, all []*Listener) func() (api.Code, error) {
	return func() (api.Code, error) {
		code, err := keys.NewCode()
		out := api.Code{Schema: "wf.code/v1", Code: code, Expires: time.Now().Add(guard.CodeLife).UTC().Format(time.RFC3339), URLs: []string{}}
		for _, d := range all {
			if d.Guard.Keys != nil {
				out.URLs = append(out.URLs, withCode(d.URL, code))
			}
		}
		return out, err
	}
}

// addresses are where listeners listen, each with a code of its own.
func addresses(keys *guard.Keys, all []*Listener) ([]api.Address, error) {
	out := []api.Address{}
	for _, d := range all {
		l := api.Address{URL: d.URL}
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
