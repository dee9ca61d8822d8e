//go:build !linux

package sandbox

import (
	"context"
	"io"
	"os"
	"time"

	"wf/protocol"
	"wf/roles/workspace"
)

// Probe finds no tier: only Linux has what is needed.
func Probe() Tier { return probed().tier }

type found struct{ tier Tier }

func probed() found {
	return found{Tier{Name: None, Reasons: []string{"only Linux has Landlock and seccomp"}}}
}

// AllowNamespaces has nothing to say: only Linux has them.
func AllowNamespaces() string { return "" }

func (found) flags(Policy) uintptr { return 0 }

func (*launch) run(context.Context, uintptr, io.Writer, io.Writer) (int, error) {
	return 0, ErrUnavailable
}

func launcher() {}

func serveOverlay([]string) {}

// Overlay has no mounts to make.
func Overlay(lower, upper, work string) (*workspace.View, error) { return nil, ErrUnavailable }

func machineMemory() uint64 { return 0 }

// hold has nothing to keep: no command runs here.
func (*Policy) hold() (release func(), err error) { return func() {}, nil }

// Forget has nothing to remove either.
func Forget(protocol.RunID) error { return nil }

func sweepGone() {}

// Sweep finds nothing: no command runs here.
func Sweep(time.Time, bool) (all, old int, bytes int64, err error) { return 0, 0, 0, nil }

// layers has no mounts to make.
func (Policy) layers(own, host) ([]overlay, []*os.File, error) { return nil, nil, nil }

func (host) seedProgram(string) (string, []string, []*os.File, error) { return "", nil, nil, nil }

// SeedGo has nothing to do: no command runs here.
func SeedGo(context.Context) error { return nil }

// SeedTests has nothing to do either.
func SeedTests(context.Context) error { return nil }

func (*launch) clear() error { return nil }

func (*launch) letGo() {}
