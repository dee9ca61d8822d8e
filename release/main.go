// Command release makes what users install: for each platform an archive, for Debian packages,
// and an image for containers, with a list of their hashes.
//
//	go run ./release [-version V] [-out dist]
//
//	commit ─► wf of each platform ─► wf_V_OS_ARCH.tar.gz   program, manual, completions, papers
//	              │                  wf_V_ARCH.deb         the same, with a unit of systemd
//	              └► manual,         wf_V_oci.tar          one layer, no shell, a user without rights
//	                 completions     SHA256SUMS             and with a key SHA256SUMS.minisig
//
// It needs Go, git, and in Go's cache the modules and the toolchain that go.mod names, and no network.
//
// # Promised
//
// The same commit, version and key make the same bytes, on any machine and in any directory: all
// times are that of the commit (or SOURCE_DATE_EPOCH), entries are sorted, owners are fixed.
//
// # Not here
//
// Uploading, and a key: it is given from outside (sign.go).
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A platform is what a program is built for, as Go names it.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// platforms are those of a release.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// A release is what its products are made from.
type release struct {
	version    string // as it is shown: 1.2.0, or devel-0123456789ab
	revision   string // of git, "" where it is not known
	toolchain  string // that builds it: go1.26.11
	key        *key   // that signs it, nil for none
	when       time.Time
	maintainer string // of the Debian packages: Name <address>
	texts      []file // papers, below docs/ and beside it; man/man1/…, completions/…
	roots      []byte // certificates for TLS in the image, nil for none
	programs   map[platform][]byte
}

// A product is a file of the release.
type product struct {
	name string
	data []byte
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	version := flags.String("version", "", "version (default: from git describe)")
	revision := flags.String("revision", "", "commit that the image names (default: that of git)")
	out := flags.String("out", "dist", "directory of the products")
	only := flags.String("only", "", "platforms, such as linux/amd64,darwin/arm64 (default: all)")
	maintainer := flags.String("maintainer", "wf <wf@localhost>", "maintainer of the Debian packages: Name <address>")
	roots := flags.String("roots", "", "file of certificates (PEM) for the image, such as /etc/ssl/certs/ca-certificates.crt")
	keyFile := flags.String("key", os.Getenv(keyVariable), "file of the secret key that signs, as minisign -G -W makes it (default: $"+keyVariable+", else none signs)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	wanted, err := chosen(*only)
	if err != nil {
		return err
	}
	r, err := describe(ctx, *version, os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	if *keyFile != "" {
		if r.key, err = readKey(*keyFile); err != nil {
			return err
		}
	}
	r.maintainer, r.revision = *maintainer, cmp.Or(*revision, r.revision)
	if *roots != "" {
		if r.roots, err = os.ReadFile(*roots); err != nil {
			return err
		}
	}
	if err := r.build(ctx, wanted); err != nil {
		return err
	}
	products, err := r.products()
	if err != nil {
		return err
	}
	if err := write(*out, products); err != nil {
		return err
	}
	if r.key == nil {
		fmt.Fprintln(os.Stderr, "nothing is signed: -key FILE, or "+keyVariable+", names the key that does")
		return nil
	}
	fmt.Fprintln(os.Stderr, "SHA256SUMS is signed; to verify it: minisign -V -m SHA256SUMS -P "+r.key.public())
	return nil
}

// chosen reads a list of platforms.
func chosen(list string) ([]platform, error) {
	if list == "" {
		return platforms, nil
	}
	var out []platform
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: want some of %v", name, platforms)
		}
		out = append(out, platforms[i])
	}
	return out, nil
}

// build makes the programs, and from one that runs here the manual and the completions.
func (r *release) build(ctx context.Context, wanted []platform) error {
	r.programs = map[platform][]byte{}
	here := platform{runtime.GOOS, runtime.GOARCH}
	var err error
	if r.toolchain, err = pinned(ctx); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "wf-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	for _, p := range append([]platform{here}, wanted...) {
		name := filepath.Join(scratch, p.os+"_"+p.arch)
		if _, err := os.Stat(name); err == nil {
			continue
		}
		fmt.Fprintln(os.Stderr, "building", r.version, "for", p, "by", r.toolchain)
		if err := compile(ctx, p, r.version, r.toolchain, name); err != nil {
			return err
		}
	}
	for _, p := range wanted {
		if r.programs[p], err = os.ReadFile(filepath.Join(scratch, p.os+"_"+p.arch)); err != nil {
			return err
		}
	}
	if r.texts, err = papers(os.DirFS(".")); err != nil {
		return err
	}
	told, err := tell(ctx, filepath.Join(scratch, here.os+"_"+here.arch), scratch, r.when)
	r.texts = append(r.texts, told...)
	return err
}

// products makes all that is published, SHA256SUMS last, with its signature.
func (r *release) products() ([]product, error) {
	var out []product
	var errs []error
	add := func(p product, err error) {
		errs = append(errs, err)
		if p.data != nil {
			out = append(out, p)
		}
	}
	for _, p := range platforms {
		if r.programs[p] == nil {
			continue
		}
		add(r.archive(p))
		if p.os == "linux" {
			add(r.deb(p))
		}
	}
	add(r.image())
	list := sums(out)
	out = append(out, list)
	if r.key != nil {
		out = append(out, r.key.sign(list, fmt.Sprintf("wf %s %s %s", r.version, r.revision, r.toolchain)))
	}
	return out, errors.Join(errs...)
}

// write puts the products into a directory.
func write(dir string, products []product) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range products {
		if err := os.WriteFile(filepath.Join(dir, p.name), p.data, 0o644); err != nil {
			return err
		}
		fmt.Printf("%9d  %s\n", len(p.data), filepath.Join(dir, p.name))
	}
	return nil
}
