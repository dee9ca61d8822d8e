package client

import (
	"context"
	"net/url"

	"wf/api"
	"wf/protocol"
)

// Tables lists what sweeps and evals have come to, in as many answers as that takes.
func (s Service) Tables(ctx context.Context, p api.Part) (*api.TableList, error) {
	return pages(p, "/v1/tables", given("agent", s.Worker), func(path string) (*api.TableList, error) {
		return get[api.TableList](ctx, s.API, path)
	}, func(l *api.TableList) (*[]api.TableHead, string) { return &l.Items, l.Next })
}

// Table is what a sweep or an eval has come to.
func (s Service) Table(ctx context.Context, id protocol.RunID) (*api.Table, error) {
	return get[api.Table](ctx, s.API, withQuery("/v1/tables/"+url.PathEscape(string(id)), given("agent", s.Worker)))
}
