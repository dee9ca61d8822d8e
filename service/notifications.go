package service

import (
	"context"
	"time"

	"wf/api"
	"wf/service/notify"
)

// Notifications lists deliveries of notifications.
func (l *Local) Notifications(ctx context.Context, q api.NotificationQuery) (*api.NotificationList, error) {
	sinks, err := l.Sinks()
	if err != nil {
		return nil, err
	}
	out, err := notify.List(ctx, l.Store, sinks, q)
	if err != nil {
		return nil, err
	}
	if c, ok := api.CallerOf(ctx); ok && !c.Owner {
		notify.Outline(out, sinks)
	}
	return out, nil
}

// RetryNotifications has deliveries attempted again.
func (l *Local) RetryNotifications(ctx context.Context, r api.RetryNotifications) (*api.NotificationsRetried, error) {
	ids, err := notify.Retry(ctx, l.Store, time.Now(), caller(ctx), r.All, r.IDs)
	if err != nil {
		return nil, err
	}
	return &api.NotificationsRetried{Schema: "wf.notifications_retried/v1", Retried: append([]string{}, ids...)}, nil
}
