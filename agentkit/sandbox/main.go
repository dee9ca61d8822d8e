package sandbox

import "os"

// marker is the name under which the launcher is started. A binary that is started under it
// does nothing but confine a command, which a caller could have run unconfined himself.
const marker = "wf:sandbox"

// Main must be the first thing that the main function of a binary calls, and TestMain of a
// test, if it runs commands by this package: it does not return in the launcher, and does
// nothing elsewhere.
func Main() {
	if len(os.Args) > 0 && os.Args[0] == marker {
		launcher()
	}
}
