package config

import (
	"errors"
	"path/filepath"
)

// Limits is the directory of what is known of accounts.
func (l *Loaded) Limits() string { return filepath.Join(l.places.State, "limits") }

// Trust trusts all that the configs want.
func (l *Loaded) Trust() error {
	wants, err := l.Wants()
	errs := []error{err}
	for _, w := range wants {
		if !w.Trusted {
			errs = append(errs, l.grants.Add(w.Grant))
		}
	}
	return errors.Join(errs...)
}
