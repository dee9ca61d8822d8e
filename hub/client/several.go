package client

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
)

// Several is an API of servers that serve the same, hubs of one fleet: it speaks to the first, and to the next one as soon as that cannot be
// reached. A request goes to another server only if nothing of it was sent; else the caller has the error, and its next request goes there.
func Several(all []*API) *API {
	if len(all) == 1 {
		return all[0]
	}
	return &API{base: "http://wf", via: &http.Client{Transport: &several{all: all}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// several is what reaches them.
type several struct {
	all []*API
	at  atomic.Int64 // counts on, so that each server has its turn
}

func (s *several) RoundTrip(r *http.Request) (*http.Response, error) {
	var failed error
	for range s.all {
		at := s.at.Load()
		to := s.all[at%int64(len(s.all))]
		out, err := to.toward(r)
		if err != nil {
			return nil, err
		}
		answer, err := to.via.Transport.RoundTrip(out)
		if err == nil || r.Context().Err() != nil {
			return answer, err
		}
		s.at.CompareAndSwap(at, at+1)
		failed = errors.Join(failed, err)
		// Only of one that could not be dialled it is known that nothing was sent; and its body is closed.
		if dial, ok := errors.AsType[*net.OpError](err); !ok || dial.Op != "dial" || r.Body != nil && r.GetBody == nil {
			break
		}
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			r = r.Clone(r.Context())
			r.Body = body
		}
	}
	return nil, failed
}

// CloseIdleConnections is for http.Client.
func (s *several) CloseIdleConnections() {
	for _, a := range s.all {
		a.Close()
	}
}

// toward is a request as it is sent to this server, with its token.
func (a *API) toward(r *http.Request) (*http.Request, error) {
	base, err := url.Parse(a.base)
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host = base.Scheme, base.Host, ""
	out.URL.Path = base.Path + r.URL.Path
	if r.URL.RawPath != "" {
		out.URL.RawPath = base.EscapedPath() + r.URL.RawPath
	}
	a.Authorize(out.Header)
	return out, nil
}
