package client

import (
	"context"

	"wf/api"
)

// Notifications lists deliveries of notifications, in as many answers as that takes.
func (s Service) Notifications(ctx context.Context, q api.NotificationQuery) (*api.NotificationList, error) {
	return pages(q.Part, "/v1/notifications", given("run", string(q.Run), "agent", s.Worker), func(path string) (*api.NotificationList, error) {
		return get[api.NotificationList](ctx, s.API, path)
	}, func(l *api.NotificationList) (*[]api.Notification, string) { return &l.Items, l.Next })
}

// RetryNotifications has deliveries attempted again.
func (s Service) RetryNotifications(ctx context.Context, r api.RetryNotifications) (*api.NotificationsRetried, error) {
	path := withQuery("/v1/notifications/retry", given("agent", s.Worker))
	out := new(api.NotificationsRetried)
	if err := s.API.post(ctx, path, r, out); err != nil {
		return nil, err
	}
	return out, sound(out.Retried != nil, path)
}

// Deletions lists the runs that were deleted, in as many answers as that takes.
func (s Service) Deletions(ctx context.Context, p api.Part) (*api.Deletions, error) {
	return pages(p, "/v1/deletions", given("agent", s.Worker), func(path string) (*api.Deletions, error) {
		return get[api.Deletions](ctx, s.API, path)
	}, func(d *api.Deletions) (*[]api.Deletion, string) { return &d.Items, d.Next })
}
