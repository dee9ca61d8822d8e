package main

import (
	"io"
	"slices"
	"testing"

	"wf/cmd/internal/render"
)

// Two chats end one after the other: what was written in both is there for the next.
func TestHistoryOfChatsIsAddedTo(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	a := newAppOn(nil, &render.Screen{Writer: io.Discard}, &render.Screen{Writer: io.Discard})
	a.writeHistory([]string{"one"}, 0)
	a.writeHistory([]string{"one", "two\nlines"}, 1)
	a.writeHistory([]string{"one", "three"}, 1)
	a.writeHistory([]string{"one"}, 1)
	if got, want := a.readHistory(), []string{"one", "two\nlines", "three"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
}
