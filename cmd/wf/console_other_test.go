//go:build !linux

package main

import "golang.org/x/sys/unix"

// readSettings is the request for the settings of a terminal.
const readSettings = unix.TIOCGETA
