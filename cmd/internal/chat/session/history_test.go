package session_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"wf/cmd/internal/chat/session"
)

// Two chats end one after the other: what was written in both is there for the next.
func TestHistoryOfChatsIsAddedTo(t *testing.T) {
	h := session.History(filepath.Join(t.TempDir(), "state", "chat_history"))
	if err := errors.Join(h.Add([]string{"one"}), h.Add([]string{"two\nlines"}), h.Add([]string{"three"}), h.Add(nil)); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Read(); err != nil || !slices.Equal(got, []string{"one", "two\nlines", "three"}) {
		t.Errorf("kept %q, %v", got, err)
	}
	if got, err := session.History("").Read(); got != nil || err != nil || session.History("").Add([]string{"x"}) != nil {
		t.Errorf("without a file it keeps %q, %v", got, err)
	}
}
