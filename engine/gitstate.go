package engine

import (
	"context"
	"time"

	"wf/protocol"
	"wf/roles/workspace"
)

// gitState says what commit a workspace stands at; nil outside of git, before the first commit
// and where that cannot be read: it is a note for people, nothing depends on it.
//
// Whether files differ from the commit only git knows, and git runs what the workspace tells it
// to run.
func gitState(ctx context.Context, dir string) *protocol.GitState {
	if dir == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	root, err := workspace.Open(dir, "")
	if err != nil {
		return nil
	}
	defer root.Close()
	head := workspace.ReadHead(ctx, root)
	if head == nil || head.Commit == "" {
		return nil
	}
	return &protocol.GitState{Head: head.Commit}
}
