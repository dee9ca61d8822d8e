//go:build !linux

package filestest

import (
	"context"
	"errors"
)

func newWatch(context.Context) (watch, error) { return nil, errors.ErrUnsupported }
