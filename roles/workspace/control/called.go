package control

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of what hooks call.
const (
	hookMax   = 64 << 10 // bytes of a hook
	calledMax = 50       // files of a repository
	wordsMax  = 2_000    // words of its hooks that are looked for
)

// Called are files of the workspace that the hooks of a repository name in a word of their own, as a path from its top or from the
// hook: what a hook calls git runs. It is a guess, for what is told; a program that is found by PATH or put together is not among them.
func (e *Eye) Called(top string, parts Parts) (out []Place, err error) {
	words := wordsMax
	for _, p := range parts.Places {
		if !p.There || p.Whole || p.Inner && filepath.Base(p.Path) != "hooks" {
			continue
		}
		kind, err := e.Kind(p.Path)
		if err != nil {
			return out, err
		}
		hooks := []string{p.Path}
		if kind == unix.S_IFDIR {
			names, _, err := e.Names(p.Path, entriesMax)
			if err != nil {
				return out, err
			}
			hooks = hooks[:0]
			for _, name := range names {
				hooks = append(hooks, filepath.Join(p.Path, name))
			}
		} else if !p.Linked() {
			continue // settings
		}
		for _, hook := range hooks {
			if out, err = e.calledBy(top, hook, &words, out); err != nil || len(out) >= calledMax || words == 0 {
				return out, err
			}
		}
	}
	return out, nil
}

// calledBy adds what one hook names. left is how many words may still be looked for.
func (e *Eye) calledBy(top, hook string, left *int, out []Place) ([]Place, error) {
	if strings.HasSuffix(hook, ".sample") {
		return out, nil
	}
	text, err := e.Read(hook, hookMax) // it may be a link
	if err != nil {
		return out, err
	}
	words := strings.FieldsFunc(string(text), func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'`;|&()<>{}$=,:", r) })
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		if !strings.ContainsAny(word, "./") || len(word) > unix.PathMax {
			continue
		}
		if *left == 0 {
			return out, nil
		}
		*left--
		for _, from := range []string{top, filepath.Dir(hook)} {
			p, err := e.follow(from, strings.TrimLeft(word, "/"))
			if err != nil {
				return out, err
			}
			kind, err := e.Kind(p.Path)
			if err != nil {
				return out, err
			}
			known := slices.ContainsFunc(out, func(q Place) bool { return q.Path == p.Path })
			if kind == unix.S_IFREG && !known && e.within(p.Path) && p.Path != hook && len(out) < calledMax {
				out = append(out, Place{Name: p.Path, Path: p.Path, There: true})
			}
		}
	}
	return out, nil
}
