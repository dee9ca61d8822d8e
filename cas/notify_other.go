//go:build unix && !linux

package cas

import "errors"

// watchFile is known on Linux only: elsewhere the file is looked at again and again.
func watchFile(string, func()) (stop func(), err error) { return nil, errors.ErrUnsupported }
