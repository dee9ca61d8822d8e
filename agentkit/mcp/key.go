package mcp

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"wf/protocol"
)

// Key is what trust in a server is in: its words, whether it runs within walls, and else the files of the workspace
// that its command names. The name and the values of secrets are not part of it.
func Key(s protocol.MCPServer, at Place) (protocol.Link, error) {
	s.Name = ""
	return KeyOf(struct {
		Kind     string             `json:"kind"`
		Server   protocol.MCPServer `json:"server"`
		Confined bool               `json:"confined,omitempty"`
		Files    []File             `json:"files,omitempty"`
	}{"mcp", s, at.Confined, at.Files})
}

// KeyOf is the CID of a value of a config, as JSON.
func KeyOf(v any) (protocol.Link, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return protocol.Link{}, err
	}
	return protocol.RawLink(raw), nil
}

// Text is a server as people read it before they trust it, a line for each part of its key.
func Text(s protocol.MCPServer, at Place) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if s.URL != "" {
		line("url %s", s.URL)
	}
	for _, h := range s.Headers {
		line("header %s: $%s", oneLine(h.Name), oneLine(h.Secret))
	}
	for i, arg := range s.Command {
		line("%s %q", map[bool]string{true: "program", false: "argument"}[i == 0], arg)
	}
	for _, v := range s.Env {
		if v.Secret != "" {
			line("env %s=$%s", oneLine(v.Name), oneLine(v.Secret))
			continue
		}
		line("env %s=%q", oneLine(v.Name), v.Value)
	}
	if s.Sandbox != "" {
		line("sandbox %s", s.Sandbox)
	}
	if all, hosts := s.Reach(); all {
		line("network allow")
	} else {
		for _, h := range hosts {
			line("network %s", h)
		}
	}
	if at.Confined {
		line("within walls")
	}
	for _, f := range at.Files {
		switch f.Sum {
		case "":
			line("file %s is not there", oneLine(f.Name))
			continue
		case Directory:
			line("file %s is a directory, whatever lies in it", oneLine(f.Name))
			continue
		}
		line("file %s sha256:%s", oneLine(f.Name), f.Sum)
	}
	return b.String()
}

// oneLine is a name that makes no further line.
func oneLine(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}
