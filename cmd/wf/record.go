package main

import (
	"os"

	"wf/service/compose"
)

// recordTo has every model call from here on recorded in a file, "" in none; stop ends that.
func (a *app) recordTo(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	to, err := compose.OutFile(path)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	f, err := to.Open(os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return a.Record(f), nil
}
