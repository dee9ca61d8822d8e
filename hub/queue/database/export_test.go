package database

import (
	"context"
	"time"
)

// OpenAt opens a queue whose clock is now, and which hears of other hubs only in its turns.
func OpenAt(ctx context.Context, dsn string, now func() time.Time) (*Store, error) {
	return Open(ctx, dsn, Options{now: now})
}
