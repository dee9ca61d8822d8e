package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// describe reads version, revision and time from git, as far as they are not given: epoch is
// SOURCE_DATE_EPOCH, in seconds. Outside of a repository both must be given.
func describe(ctx context.Context, version, epoch string) (*release, error) {
	r := &release{version: strings.TrimPrefix(version, "v")}
	revision, noGit := output(ctx, "git", "rev-parse", "HEAD")
	if noGit != nil && (version == "" || epoch == "") {
		return nil, fmt.Errorf("there is no commit here (%w): give -version, and SOURCE_DATE_EPOCH in the environment", noGit)
	}
	r.revision = revision
	if version == "" {
		described, err := output(ctx, "git", "describe", "--tags", "--match", "v[0-9]*", "--always", "--abbrev=12", "--dirty")
		if err != nil {
			return nil, err
		}
		if r.version = strings.TrimPrefix(described, "v"); r.version == described {
			r.version = "devel-" + described
		}
	}
	if strings.Trim(r.version, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-~") != "" {
		return nil, fmt.Errorf("the version %q: want letters, digits and . + - ~ alone", r.version)
	}
	if epoch == "" {
		var err error
		if epoch, err = output(ctx, "git", "log", "-1", "--format=%ct"); err != nil {
			return nil, err
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH %q: want seconds since 1970", epoch)
	}
	r.when = time.Unix(seconds, 0).UTC()
	return r, nil
}

// pinned is the toolchain that go.mod names: whichever Go starts this program, that one builds the release.
func pinned(ctx context.Context) (string, error) {
	text, err := output(ctx, "go", "mod", "edit", "-json")
	if err != nil {
		return "", err
	}
	var module struct{ Toolchain string }
	if err := json.Unmarshal([]byte(text), &module); err != nil {
		return "", fmt.Errorf("go.mod: %w", err)
	}
	if module.Toolchain == "" {
		return "", errors.New("go.mod names no toolchain: a release is built by one that is pinned")
	}
	return module.Toolchain, nil
}

// output is what a program writes to stdout, without white space around it.
func output(ctx context.Context, name string, args ...string) (string, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}

// compile builds wf. The bytes depend on the sources, the version and the toolchain alone: no path, no build
// id and nothing of git is in them, and no C library.
func compile(ctx context.Context, p platform, version, toolchain, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X main.release="+version, "-o", to, "./cmd/wf")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN="+toolchain, "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build for %s: %w", p, err)
	}
	return nil
}

// papers are the pages of the repository for people.
func papers(root fs.FS) ([]file, error) {
	var out []file
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "docs/operate/*", "LICENSE*"} {
		names, err := fs.Glob(root, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			data, err := fs.ReadFile(root, name)
			if err != nil {
				return nil, err
			}
			out = append(out, file{name: name, mode: 0o644, data: data})
		}
	}
	if len(out) < 5 {
		return nil, fmt.Errorf("only %d papers are here: start it in the root of the repository", len(out))
	}
	return out, nil
}

// completions are the files of the completions by shell, as packages name them.
var completions = map[string]string{"bash": "wf.bash", "zsh": "_wf", "fish": "wf.fish"}

// tell has a program write its manual and completions. home is an empty directory.
func tell(ctx context.Context, program, home string, when time.Time) ([]file, error) {
	ask := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir, cmd.Env, cmd.Stderr = home, []string{"HOME=" + home, "LC_ALL=C.UTF-8"}, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("wf %s: %w", strings.Join(args, " "), err)
		}
		return out, nil
	}
	written, err := ask("man", "-o", "json", "--date", when.Format(time.DateOnly))
	if err != nil {
		return nil, err
	}
	var manual struct{ Pages map[string]string }
	if err := json.Unmarshal(written, &manual); err != nil {
		return nil, fmt.Errorf("wf man: %w", err)
	}
	var out []file
	for _, name := range slices.Sorted(maps.Keys(manual.Pages)) {
		out = append(out, file{name: "man/man1/" + name, mode: 0o644, data: []byte(manual.Pages[name])})
	}
	for _, shell := range slices.Sorted(maps.Keys(completions)) {
		script, err := ask("completion", shell)
		if err != nil {
			return nil, err
		}
		out = append(out, file{name: "completions/" + completions[shell], mode: 0o644, data: script})
	}
	return out, nil
}
