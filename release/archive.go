package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// unit has systemd run wf serve for a user.
//
//go:embed wf.service
var unit []byte

// serverUnit has systemd run wf serve for a team, as a user of its own.
//
//go:embed wf-server.service
var serverUnit []byte

// A file of an archive. A name that ends with a slash is a directory.
type file struct {
	name  string // relative, with slashes
	mode  int64
	data  []byte
	owner int // user and group
}

// pack writes files and the directories that they lie in, sorted by name.
func pack(files []file, when time.Time) ([]byte, error) {
	all := map[string]file{}
	for _, f := range files {
		if _, twice := all[f.name]; twice {
			return nil, fmt.Errorf("%s is there twice", f.name)
		}
		all[f.name] = f
		for dir := above(f.name); dir != ""; dir = above(dir) {
			if _, there := all[dir]; !there {
				all[dir] = file{name: dir, mode: 0o755}
			}
		}
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: f.mode, Size: int64(len(f.data)), ModTime: when, Uid: f.owner, Gid: f.owner, Format: tar.FormatUSTAR}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// above is the directory of a name, "" for none: a/ of a/b and of a/b/.
func above(name string) string { return name[:strings.LastIndex(strings.TrimSuffix(name, "/"), "/")+1] }

// zip compresses with gzip, without a name or a time.
func zip(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// zipped is a packed and compressed archive.
func zipped(files []file, when time.Time) ([]byte, error) {
	packed, err := pack(files, when)
	if err != nil {
		return nil, err
	}
	return zip(packed)
}

// archive is the product for a platform that needs no package manager: one directory.
func (r *release) archive(p platform) (product, error) {
	dir := fmt.Sprintf("wf_%s_%s_%s", r.version, p.os, p.arch)
	files := []file{{name: dir + "/wf", mode: 0o755, data: r.programs[p]}}
	if p.os == "linux" {
		files = append(files, file{name: dir + "/systemd/wf.service", mode: 0o644, data: unit}, file{name: dir + "/systemd/wf-server.service", mode: 0o644, data: serverUnit})
	}
	for _, f := range r.texts {
		f.name = dir + "/" + f.name
		files = append(files, f)
	}
	data, err := zipped(files, r.when)
	return product{dir + ".tar.gz", data}, err
}

// sums lists the hashes of products as sha256sum writes and checks them.
func sums(products []product) product {
	var b bytes.Buffer
	for _, p := range products {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(p.data), p.name)
	}
	return product{"SHA256SUMS", b.Bytes()}
}
