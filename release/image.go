package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"
)

// imageUser is the user of the image: one that no system gives to a person.
const imageUser = 65532

// The documents of an OCI image: https://github.com/opencontainers/image-spec
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *ociPlatform      `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	ociPlatform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	manifest struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Config        descriptor        `json:"config"`
		Layers        []descriptor      `json:"layers"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}
	index struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}
	imageConfig struct {
		Created string `json:"created"`
		ociPlatform
		Config  containerConfig `json:"config"`
		RootFS  rootFS          `json:"rootfs"`
		History []layerHistory  `json:"history"`
	}
	containerConfig struct {
		User       string
		Env        []string
		Entrypoint []string
		Cmd        []string
		WorkingDir string
		Labels     map[string]string
		StopSignal string
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	layerHistory struct {
		Created   string `json:"created"`
		CreatedBy string `json:"created_by"`
	}
)

const (
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// image is an OCI archive for all Linux platforms: each has one layer with the program, a user
// without rights and an empty home. Without a Linux program it has no data.
func (r *release) image() (product, error) {
	var files []file
	var err error
	blob := func(mediaType string, data []byte) descriptor {
		d := descriptor{MediaType: mediaType, Digest: digest(data), Size: len(data)}
		files = append(files, file{name: "blobs/sha256/" + d.Digest[len("sha256:"):], mode: 0o644, data: data})
		return d
	}
	document := func(v any) []byte {
		data, failed := json.Marshal(v)
		if failed != nil && err == nil {
			err = failed
		}
		return data
	}
	labels := map[string]string{
		"org.opencontainers.image.title":   "wf",
		"org.opencontainers.image.version": r.version,
		"org.opencontainers.image.created": r.when.Format(time.RFC3339),
	}
	if r.revision != "" {
		labels["org.opencontainers.image.revision"] = r.revision
	}
	all := index{SchemaVersion: 2, MediaType: mediaIndex}
	for _, p := range platforms {
		if p.os != "linux" || r.programs[p] == nil {
			continue
		}
		packed, failed := pack(r.root(p), r.when)
		if failed != nil {
			return product{}, failed
		}
		layer, failed := zip(packed)
		if failed != nil {
			return product{}, failed
		}
		where := ociPlatform{p.arch, p.os}
		config := blob(mediaConfig, document(imageConfig{
			Created: r.when.Format(time.RFC3339), ociPlatform: where,
			Config: containerConfig{
				User: fmt.Sprintf("%d:%d", imageUser, imageUser), WorkingDir: "/home/wf", Labels: labels, StopSignal: "SIGTERM",
				Env: []string{"PATH=/usr/bin", "HOME=/home/wf"}, Entrypoint: []string{"/usr/bin/wf"}, Cmd: []string{"--help"},
			},
			RootFS:  rootFS{"layers", []string{digest(packed)}},
			History: []layerHistory{{r.when.Format(time.RFC3339), "wf " + r.version}},
		}))
		m := blob(mediaManifest, document(manifest{SchemaVersion: 2, MediaType: mediaManifest, Config: config,
			Layers: []descriptor{blob(mediaLayer, layer)}, Annotations: labels}))
		m.Platform = &where
		all.Manifests = append(all.Manifests, m)
	}
	if all.Manifests == nil {
		return product{}, nil
	}
	// Tools that load an archive look for a name in index.json, and take one index as the image of
	// all platforms.
	whole := blob(mediaIndex, document(all))
	whole.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version}
	files = append(files,
		file{name: "index.json", mode: 0o644, data: document(index{SchemaVersion: 2, MediaType: mediaIndex, Manifests: []descriptor{whole}})},
		file{name: "oci-layout", mode: 0o644, data: []byte(`{"imageLayoutVersion":"1.0.0"}`)})
	if err != nil {
		return product{}, err
	}
	data, err := pack(files, r.when)
	return product{fmt.Sprintf("wf_%s_oci.tar", r.version), data}, err
}

// root are the files of the image.
func (r *release) root(p platform) []file {
	out := []file{
		{name: "usr/bin/wf", mode: 0o755, data: r.programs[p]},
		{name: "etc/passwd", mode: 0o644, data: fmt.Appendf(nil, "root:x:0:0:root:/:/nonexistent\nwf:x:%d:%d:wf:/home/wf:/nonexistent\n", imageUser, imageUser)},
		{name: "etc/group", mode: 0o644, data: fmt.Appendf(nil, "root:x:0:\nwf:x:%d:\n", imageUser)},
		{name: "home/wf/", mode: 0o700, owner: imageUser},
		{name: "tmp/", mode: 0o1777},
	}
	if r.roots != nil {
		out = append(out, file{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: r.roots})
	}
	return out
}
