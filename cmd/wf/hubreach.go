package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/daemon"
	"wf/files"
	"wf/hub/client"
	"wf/protocol"
)

// A hub keeps in its data directory what the other processes of its user need to reach it.
const (
	hubSocket    = "wf.sock"   // no token is needed there
	hubAddresses = "addresses" // the URLs at which it listened last, one each line: its tokens are for those alone
	hubTokens    = "tokens"
)

// reaching is how a server is spoken to.
type reaching struct {
	url string
	client.Options
}

// reachHub finds how to speak to a server. A token that the user names goes where the user says. One
// that WF_HUB_TOKEN_FILE names, or that the hub of this machine left behind, goes over TCP of this machine
// only to a process of the same user, since any user may listen on a free port; and the latter only
// to the addresses of that hub, which is reached by its socket instead where it has one.
func (a *app) reachHub(url string) (reaching, error) {
	secure, err := a.reach.tls()
	if err != nil {
		return reaching{}, err
	}
	if _, _, err := client.Reach(url, secure); err != nil {
		return reaching{}, err // no token is looked for, for what is no address
	}
	way := reaching{url, client.Options{TLS: secure}}
	if a.reach.tokenFile != "" {
		way.Token, err = daemon.ReadToken(a.reach.tokenFile)
		return way, err
	}
	if path := os.Getenv("WF_HUB_TOKEN_FILE"); path != "" {
		way.Own = true
		way.Token, err = daemon.ReadToken(path)
		return way, err
	}
	if strings.HasPrefix(url, "unix:") {
		return way, nil
	}
	dir, err := hubDir()
	if err != nil {
		return way, err
	}
	known, err := addressesOf(dir)
	if err != nil {
		return way, err
	}
	if !slices.Contains(known, strings.TrimRight(url, "/")) {
		const fix = "give the token for that address with --hub-token-file FILE, or set WF_HUB_TOKEN_FILE"
		if len(known) > 0 {
			return way, fail(protocol.ErrUnauthorized, fix, "%s wants a token, and the stored one is for %s alone", url, strings.Join(known, " and "))
		}
		return way, fail(protocol.ErrUnauthorized, fix, "%s wants a token, and no wf hub of yours has listened there", url)
	}
	if path := filepath.Join(dir, hubSocket); files.Exists(path) {
		way.url, way.TLS = "unix:"+path, nil
		return way, nil
	}
	way.Own = true
	way.Token, err = daemon.ReadToken(filepath.Join(dir, hubTokens))
	return way, err
}

// addressesOf are the URLs at which the hub of a data directory listened last.
func addressesOf(data string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(data, hubAddresses))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fail(protocol.ErrUnauthorized, "give --hub-token-file FILE", "addresses of the hub: %v", err)
	}
	return strings.Fields(string(b)), nil
}

// keepAddresses writes down where a hub listens.
func keepAddresses(data string, doors []*daemon.Listener) error {
	var text strings.Builder
	for _, d := range doors {
		for _, h := range d.Guard.Hosts {
			if scheme, _, ok := strings.Cut(d.URL, "://"); ok {
				fmt.Fprintf(&text, "%s://%s\n", scheme, h)
			}
		}
	}
	path := filepath.Join(data, hubAddresses)
	if err := errors.Join(os.WriteFile(path+".new", []byte(text.String()), 0o600), os.Rename(path+".new", path)); err != nil {
		return fmt.Errorf("addresses of the hub: %w", err)
	}
	return nil
}
