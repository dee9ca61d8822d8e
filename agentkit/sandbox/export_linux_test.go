package sandbox

import (
	"context"
	"io"
	"testing"
)

// SettingsOfNPM has other files than those of the system be the settings that npm has beside Node.
func SettingsOfNPM(t *testing.T, paths ...string) {
	before := ofNPM
	ofNPM = paths
	t.Cleanup(func() { ofNPM = before })
}

// Attempt finds the tier of a machine with some version of Landlock, and what Run says there.
func Attempt(abi int) (Tier, error) {
	tier := attempt(abi).tier
	return tier, tier.refusal()
}

// AllowNamespacesWith is AllowNamespaces on a machine with certain settings.
func AllowNamespacesWith(settings map[string]string) string {
	return allowNamespaces(func(name string) string { return settings[name] })
}

// MemoryBelow is what the processes that one has started use, as far as a limit needs it to be known.
func MemoryBelow(pid int, limit uint64) uint64 {
	m := meter{limits: Limits{Memory: limit}, launcher: pid}
	return m.memory(descendants(pid))
}

// DiskIn is how many bytes of disk lie in directories.
func DiskIn(dirs ...string) uint64 {
	m := meter{dirs: dirs}
	return m.disk(nil)
}

// RunWithoutNamespaces is Run on a machine that has none.
func RunWithoutNamespaces(ctx context.Context, p Policy, args []string, stdout, stderr io.Writer) (int, error) {
	at := found{tier: Tier{ABI: landlockABI(), Holds: true}}
	release, err := p.hold()
	if err != nil {
		return 0, err
	}
	defer release()
	l, err := p.launch(at, args)
	if err != nil {
		return 0, err
	}
	return l.clean(ctx, 0, stdout, stderr)
}

// TrustOf is the name of the trust of a policy.
func TrustOf(p Policy) string { return p.trust() }
