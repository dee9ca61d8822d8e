package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"wf/files"
)

// UserStore is the store that the user's config at path names for all projects; "" is none. Nothing else of the
// config is judged, so that what is wrong with a provider keeps no run from being shown.
func UserStore(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, c, err := read(files.ReadNamed, path)
	if f == nil || err != nil {
		return "", err
	}
	if c.Store != "" && !strings.Contains(c.Store, "://") && !filepath.IsAbs(c.Store) {
		return "", fmt.Errorf("config %s: %w", path, ErrConfig.With("write an absolute path, or postgres://USER@HOST/NAME", "store: %q is relative, and would be another one in each directory", c.Store))
	}
	return c.Store, nil
}
