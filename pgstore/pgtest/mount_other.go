//go:build !linux

package pgtest

import "errors"

func mount(*program, int64) error { return errors.ErrUnsupported }

func unmount(string) error { return errors.ErrUnsupported }

func free(string) (int64, error) { return 0, errors.ErrUnsupported }
