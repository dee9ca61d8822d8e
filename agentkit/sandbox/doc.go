// Package sandbox confines the commands that a model asks for.
//
// A command runs under three walls of the Linux kernel, none of which needs root:
//
//	wf ──Run──► launcher (the same binary, Main) ──► sh -c …
//	              │ own user, pid, mount, ipc and network namespaces, where possible
//	              │ Landlock: reads the system and toolchains, writes the workspace
//	              │ seccomp: no sockets but those of the policy, no mounts, no io_uring
//	              └ no_new_privs, rlimits, no capabilities, an environment by allow-list
//
// # Words
//
// A Policy says what one command may do. The Tier is what this machine can hold of it, found
// by trying. The launcher stays between wf and the command: when wf is gone, or Run's context
// is done, it ends the command and everything the command has started.
//
// # Closed
//
// Where the tier does not hold, Run refuses with an error that wraps ErrUnavailable and names
// the reason. Nothing is run with half of the walls.
//
// # Not promised
//
// Landlock does not hide names: whether a path exists, and its size and times, can be seen.
// What git and wf act on outside of the sandbox (package control) is read-only where it exists when a command starts, at the place
// to which links lead; what a command makes of it anew is removed when it has ended, or told.
// Without namespaces (Tier.Namespaces) it can be written, and the mode, owner and times of files outside of the
// workspace can be changed as far as the user may, so such a tier has fewer sockets in return.
// Processor time is bounded by Run's context alone.
package sandbox
