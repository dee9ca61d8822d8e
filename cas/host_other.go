//go:build unix && !linux

package cas

// onNetwork is known on Linux only.
func onNetwork(string) (string, error) { return "", nil }

// stoppedProcess is known on Linux only.
func stoppedProcess(int) bool { return false }
