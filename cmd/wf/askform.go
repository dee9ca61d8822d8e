package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"wf/protocol"
	"wf/roles/frontmatter"
)

// readForm asks for the fields of a form, one after the other as they were written. A value that
// does not fit is asked for again, with the reason. io.EOF is the end of input.
func (a *app) readForm(ctx context.Context, form string) (protocol.JSON, error) {
	p := paint{a.err.color}
	filled := map[string]any{}
	for _, f := range protocol.FormFields(form) {
		fmt.Fprintf(a.err, "  %s %s\n", p.bold(visible(f.Name)), p.dim(aboutField(f)))
		if f.Description != "" {
			fmt.Fprintf(a.err, "    %s\n", indentLines(f.Description, "    "))
		}
		for i, v := range f.Enum {
			fmt.Fprintf(a.err, "    %d  %s\n", i+1, visible(protocol.JSONText(v)))
		}
		for {
			text, err := a.readLine(ctx)
			if err != nil {
				return nil, err
			}
			wrong := fillField(filled, f, text, form)
			if wrong == "" {
				break
			}
			fmt.Fprintf(a.err, "    %s\n", p.red(visible(f.Name+": "+wrong)))
		}
	}
	return protocol.CanonicalJSON(filled)
}

// fillField puts what was written for a field among those that are filled, and says what is
// wrong with it. An empty text is the default; without one, a field that is not required is
// left out.
func fillField(filled map[string]any, f protocol.FormField, text, form string) (wrong string) {
	delete(filled, f.Name)
	n, err := strconv.Atoi(text)
	switch {
	case text == "" && len(f.Default) > 0:
		filled[f.Name] = f.Default
	case text == "" && f.Required:
		return "a value is required (Ctrl-D leaves the question open)"
	case text == "":
		return ""
	case len(f.Enum) > 0 && err == nil && n >= 1 && n <= len(f.Enum):
		filled[f.Name] = f.Enum[n-1]
	default:
		filled[f.Name] = f.Read(text)
	}
	so, err := protocol.CanonicalJSON(filled)
	if err != nil {
		return err.Error()
	}
	at := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(f.Name)
	var reasons []string
	for _, v := range frontmatter.Validate(so, form) {
		if rest, of := strings.CutPrefix(v.Pointer, at); of && (rest == "" || rest[0] == '/') {
			reasons = append(reasons, strings.TrimPrefix(rest+": "+v.Reason, ": "))
		}
	}
	return strings.Join(reasons, "; ")
}

// aboutField is what a field takes, in a few words.
func aboutField(f protocol.FormField) string {
	var parts []string
	switch {
	case len(f.Enum) > 0:
		parts = append(parts, "one of them")
	case f.Type == "boolean":
		parts = append(parts, "yes or no")
	case f.Type == "array" || f.Type == "object":
		parts = append(parts, f.Type+", as JSON")
	default:
		parts = append(parts, orWord(f.Type, "any value"))
	}
	switch {
	case len(f.Default) > 0:
		parts = append(parts, "Enter is "+oneLine(protocol.JSONText(f.Default), 40))
	case f.Required:
		parts = append(parts, "required")
	default:
		parts = append(parts, "may be left empty")
	}
	return strings.Join(parts, ", ")
}

// showForm lists the fields that a question asks for.
func (a *app) showForm(form string) error {
	p := paint{a.out.color}
	var rows [][]string
	for _, f := range protocol.FormFields(form) {
		var values []string
		for _, v := range f.Enum {
			values = append(values, protocol.JSONText(v))
		}
		about := oneLine(strings.Join(values, "|"), 60)
		if about == "" {
			about = orWord(f.Type, "any")
		}
		switch {
		case len(f.Default) > 0:
			about += ", default " + oneLine(protocol.JSONText(f.Default), 40)
		case f.Required:
			about += ", required"
		}
		rows = append(rows, []string{"    " + p.bold(visible(f.Name)), about, oneLine(f.Description, 100)})
	}
	return table(a.out, rows)
}

// fieldFlags are the flags of wf answer that fill in a form: those that are required and have
// no default, or, where there is none such, the first, each with a value that its type takes.
func fieldFlags(form string) string {
	fields := protocol.FormFields(form)
	var flags []string
	for _, f := range fields {
		if f.Required && len(f.Default) == 0 {
			flags = append(flags, "--field "+protocol.ShellWord(f.Name+"="+f.Example()))
		}
	}
	if len(flags) == 0 && len(fields) > 0 {
		flags = append(flags, "--field "+protocol.ShellWord(fields[0].Name+"="+fields[0].Example()))
	}
	return strings.Join(flags, " ")
}
