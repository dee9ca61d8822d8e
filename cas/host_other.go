//go:build unix && !linux

package cas

// onNetwork is known on Linux only.
func onNetwork(string) (string, error) { return "", nil }

// stoppedProcess is known on Linux only.
func stoppedProcess(int) bool { return false }

// flockedBy is known on Linux only.
func flockedBy(string) (pid int, ok bool) { return 0, false }
