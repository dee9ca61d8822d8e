//go:build !linux

package at

func walkAtOnce(int, string, int) (fd int, known bool, err error) { return -1, false, nil }

// PathOnly is nothing where the system has none.
const PathOnly = 0
