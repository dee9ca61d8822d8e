package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func plainOf(t *testing.T, zipped []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// An image is read as a registry does: from index.json on, each document by its digest and size.
func TestTheImageIsOneLayerForEachPlatform(t *testing.T) {
	r := small()
	r.roots = []byte("-----BEGIN CERTIFICATE-----\n")
	files, _ := unpacked(t, made(t, r)["wf_1.2.0_oci.tar"], r.when)
	blob := func(d descriptor, to any) []byte {
		t.Helper()
		data := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if digest(data) != d.Digest || len(data) != d.Size {
			t.Fatalf("%s of %d bytes is %d bytes of %s", d.Digest, d.Size, len(data), digest(data))
		}
		if to != nil {
			if err := json.Unmarshal(data, to); err != nil {
				t.Fatal(err)
			}
		}
		return data
	}
	if got := string(files["oci-layout"]); got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %s", got)
	}
	var top, all index
	if err := json.Unmarshal(files["index.json"], &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("index.json: %v, %s", err, files["index.json"])
	}
	blob(top.Manifests[0], &all)
	if len(all.Manifests) != 2 || top.Manifests[0].MediaType != mediaIndex || all.MediaType != mediaIndex {
		t.Fatalf("the index: %+v", all)
	}
	for _, d := range all.Manifests {
		var m manifest
		var c imageConfig
		blob(d, &m)
		blob(m.Config, &c)
		if m.MediaType != mediaManifest || m.Config.MediaType != mediaConfig || len(m.Layers) != 1 || m.Layers[0].MediaType != mediaLayer {
			t.Errorf("the manifest: %+v", m)
		}
		if *d.Platform != c.ociPlatform || c.OS != "linux" {
			t.Errorf("an image of %v in the index is one of %v", *d.Platform, c.ociPlatform)
		}
		if c.Config.User != "65532:65532" || c.Config.Entrypoint[0] != "/usr/bin/wf" || c.Created != "2026-01-31T12:00:00Z" {
			t.Errorf("the config: %+v", c)
		}
		if len(c.RootFS.DiffIDs) != 1 || len(c.History) != 1 {
			t.Errorf("the layers of the config: %+v", c.RootFS)
		}
		layer := blob(m.Layers[0], nil)
		if plain := plainOf(t, layer); digest(plain) != c.RootFS.DiffIDs[0] {
			t.Error("the layer is not the one of the config")
		}
		content, lines := unpacked(t, layer, r.when)
		want := []string{"755 0 etc/", "644 0 etc/group", "644 0 etc/passwd", "755 0 etc/ssl/", "755 0 etc/ssl/certs/", "644 0 etc/ssl/certs/ca-certificates.crt",
			"755 0 home/", "700 65532 home/wf/", "1777 0 tmp/", "755 0 usr/", "755 0 usr/bin/", "755 0 usr/bin/wf"}
		if diff := cmp.Diff(want, lines); diff != "" { // no shell
			t.Error(diff)
		}
		if !strings.HasPrefix(string(content["usr/bin/wf"]), "program of "+d.Platform.Architecture) {
			t.Errorf("the image of %s holds %q", d.Platform.Architecture, content["usr/bin/wf"])
		}
	}
	if len(files) != 2+1+2*3 {
		t.Errorf("%d files, of which some belong to nothing", len(files))
	}
}

func TestToolsOfContainersReadTheImage(t *testing.T) {
	if _, err := exec.LookPath("skopeo"); err != nil {
		t.Skip(err)
	}
	name := filepath.Join(t.TempDir(), "wf.tar")
	if err := os.WriteFile(name, made(t, small())["wf_1.2.0_oci.tar"], 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("skopeo", "inspect", "--override-os", "linux", "--override-arch", "arm64", "oci-archive:"+name).CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"Architecture": "arm64"`) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestWithoutAProgramForLinuxThereIsNoImage(t *testing.T) {
	r := small()
	r.programs = map[platform][]byte{{"darwin", "arm64"}: []byte("x")}
	if all := made(t, r); len(all) != 2 {
		t.Errorf("%d products, want an archive and the sums", len(all))
	}
}
