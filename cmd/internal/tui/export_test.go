package tui

// Sign is the sign of a state, "" for none.
func Sign(state string) string { return marks[state] }
