package sandbox

import (
	"fmt"
	"os"
)

// marker is the name under which the launcher is started. A binary that is started under it
// does nothing but confine a command, which a caller could have run unconfined himself.
const marker = "wf:sandbox"

// holderMarker is the name under which the holder of layers is started: see Overlay.
const holderMarker = "wf:layers"

// sweepMarker is the name under which the process is started that removes what is gone.
const sweepMarker = "wf:sweep"

// ready says that this binary can be its own launcher. Without Main it would start itself over
// again instead.
var ready bool

// Main must be the first thing that the main function of a binary calls, and TestMain of a
// test, if it runs commands by this package: it does not return in the launcher, in the holder of
// layers, in a cache of go and in what removes the directories of runs, and does nothing elsewhere.
func Main() {
	ready = true
	if len(os.Args) > 0 && os.Args[0] == marker {
		launcher()
	}
	if len(os.Args) > 0 && os.Args[0] == sweepMarker {
		sweepGone()
	}
	if len(os.Args) == 4 && os.Args[0] == holderMarker {
		serveOverlay(os.Args[1:])
	}
	if len(os.Args) == 4 && os.Args[1] == cacheMarker {
		if err := serveCache(os.Stdin, os.Stdout, cacheDir(os.Args[2]), cacheDir(os.Args[3])); err != nil {
			fmt.Fprintln(os.Stderr, "the cache of go:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}
