package main

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"wf/protocol"
)

// refused are the answers by status that paths refer to by name: components.responses.
var refused = []struct {
	name   string
	status int
	what   string
}{
	{"BadRequest", http.StatusBadRequest, "The request cannot be read"},
	{"Unauthorized", http.StatusUnauthorized, "No valid token"},
	{"Forbidden", http.StatusForbidden, "The token does not allow it, or it was not trusted"},
	{"NotFound", http.StatusNotFound, "There is none of that name"},
	{"Conflict", http.StatusConflict, "Not as things are"},
	{"Gone", http.StatusGone, "It was deleted"},
	{"TooLarge", http.StatusRequestEntityTooLarge, "The body is too long"},
	{"Media", http.StatusUnsupportedMediaType, "The body is of another form"},
	{"Unprocessable", http.StatusUnprocessableEntity, "What it says does not fit"},
	{"Upgrade", http.StatusUpgradeRequired, "This is a WebSocket"},
	{"TooMany", http.StatusTooManyRequests, "Too many requests, ask again later"},
	{"BadGateway", http.StatusBadGateway, "What is behind the server did not answer as it should"},
	{"Unavailable", http.StatusServiceUnavailable, "Not now, ask again later"},
}

// refusals writes components.responses: each status with its codes, and what stands for all others.
func refusals() []byte {
	b := bytes.NewBufferString("  responses: # written from protocol.Codes\n")
	write := func(name, what string) {
		answer := schema{"description": what, "content": schema{"application/json": schema{"schema": schema{"$ref": "#/components/schemas/Error"}}}}
		fmt.Fprintf(b, "    %s: %s\n", name, text(answer))
	}
	for _, r := range refused {
		var names []string
		for _, name := range codeNames(r.status) {
			names = append(names, name.(string))
		}
		write(r.name, fmt.Sprintf("%s: %s.", r.what, strings.Join(names, ", ")))
	}
	write("Error", "Why not: the server failed, or cannot do this.")
	return b.Bytes()
}

// codeNames are the codes of a status, 0 for all of them, sorted.
func codeNames(status int) []any {
	var names []string
	for _, c := range protocol.Codes() {
		if status == 0 || c.Status == status {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	out := make([]any, len(names))
	for i, name := range names {
		out[i] = name
	}
	return out
}
