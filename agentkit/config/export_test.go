package config

import "errors"

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
