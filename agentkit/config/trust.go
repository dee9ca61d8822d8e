package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// trustFile is where the trust in the config at path is kept: a file per config, that no two
// processes write at the same place.
func (p Places) trustFile(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(p.State, "trusted", hex.EncodeToString(sum[:16]))
}

// trusted reports whether the bytes of a config are those that were trusted.
func (p Places) trusted(f *File) (bool, error) {
	if p.State == "" {
		return false, nil
	}
	path, err := filepath.Abs(f.Path)
	if err != nil {
		return false, err
	}
	text, err := os.ReadFile(p.trustFile(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read what is trusted: %w", err)
	}
	return string(text) == trustLine(f.text, path), nil
}

// trustLine is what the trust in a config says: its hash, as sha256sum writes it.
func trustLine(text []byte, path string) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]) + "  " + path + "\n"
}

// Trust trusts the project's config as it was read.
func (l *Loaded) Trust() error {
	path, err := filepath.Abs(l.Project.Path)
	if err != nil {
		return err
	}
	if err := writeWhole(l.places.trustFile(path), []byte(trustLine(l.Project.text, path))); err != nil {
		return fmt.Errorf("keep what is trusted: %w", err)
	}
	return nil
}

// Distrust takes the trust in the project's config back.
func (l *Loaded) Distrust() error {
	path, err := filepath.Abs(l.Project.Path)
	if err != nil {
		return err
	}
	err = os.Remove(l.places.trustFile(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Powers lists, in the order of their names, what the project's config can do only once it is
// trusted.
func (l *Loaded) Powers() ([]string, error) {
	c, err := Parse(l.Project.Path, string(l.Project.text))
	if err != nil {
		return nil, err
	}
	var powers []string
	if slices.ContainsFunc(c.Model, func(m string) bool { return !l.Local(m) }) {
		powers = append(powers, "make "+strings.Join(c.Model, ", ")+" the default model, which agents that name none send their prompts to")
	}
	for _, name := range sorted(c.Providers) {
		p := c.Providers[name]
		if p.KeyEnv == "" && !p.loopback() {
			powers = append(powers, fmt.Sprintf("send prompts to %s, as %s/…", orDefault(p.BaseURL, "the maker of the wire "+p.Wire), name))
		}
		if p.KeyEnv != "" {
			powers = append(powers, fmt.Sprintf("send $%s to %s, as %s/…", p.KeyEnv, orDefault(p.BaseURL, "the maker of the wire "+p.Wire), name))
		}
	}
	if prices := c.prices(); len(prices) > 0 {
		powers = append(powers, "set the prices by which limits of cost hold, of "+strings.Join(sorted(prices), ", "))
	}
	for _, name := range sorted(c.MCP) {
		powers = append(powers, fmt.Sprintf("start the program, or call the server, of mcp:%s: %s", name, strings.TrimSpace(string(c.MCP[name]))))
	}
	if len(c.AllowModels) > 0 {
		powers = append(powers, "let clients of a daemon choose the models "+strings.Join(c.AllowModels, ", "))
	}
	if len(c.Sandbox.Read) > 0 {
		powers = append(powers, "let the commands of agents read "+strings.Join(c.Sandbox.Read, ", "))
	}
	if len(c.Sandbox.Sockets) > 0 {
		powers = append(powers, "let the commands of agents use every key of your ssh-agent, to sign and to log in as you")
	}
	if len(c.Sandbox.Devices) > 0 {
		powers = append(powers, "let the commands of agents use the devices "+strings.Join(c.Sandbox.Devices, ", "))
	}
	if c.Sandbox.Limits != (SandboxLimits{}) {
		powers = append(powers, "set the limits of agents' commands")
	}
	return powers, nil
}
