// Command schemas writes what describes the JSON of the service, from the types that it is made of:
//
//	openapi.yaml (paths, by hand) ──names──► Go types (api, protocol, …) ──► components.schemas of openapi.yaml
//	                                         protocol.Codes ───────────────► the code of an error, components.responses
//	openapi.yaml ─────────────────────────────────────────────────────────► openapi.yaml.gz, which the program holds
//	                                             overrides.yaml ───────┘└──► the types of the web page
//
// Run it in the root of the module: go run ./hub/server/schemas, or make update. A test fails while
// the files are not what it writes.
//
// # Words
//
// A component is a schema that is referred to by its name: that of a Go type, or the one that
// overrides.yaml gives it. Those that the paths refer to are written, and those that they lead to.
//
// # Promised
//
// Fields are required unless their tag says omitempty or omitzero; pointers may be null, slices and
// maps are not. Comments are the descriptions. Constants of a string type are its values. The field
// "schema" has the value that the comment of its type names, as in wf.run/v1. A field with the tag
// at:"hub" is described by the hub alone. Requests refuse other fields, as the server does.
package main

import (
	"bytes"
	"compress/gzip"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// packages are where types are looked for, in this order.
var packages = []string{"api", "protocol", "hub/server", "hub/guard", "hub/reply", "hub/queue", "hub/relay"}

const (
	ofServer, ofHub = "hub/server/openapi.yaml", "hub/relay/openapi.yaml" // by hand above the mark, with a requestBody in one line
	mark            = "  schemas: # written by go run ./hub/server/schemas (make update) from the Go types: change those\n"
	page            = "hub/web/src/model/service.ts"
	overrides       = "hub/server/schemas/overrides.yaml"
)

var reference = regexp.MustCompile(`#/components/schemas/(\w+)`)

func main() {
	log.SetFlags(0)
	log.SetPrefix("schemas: ")
	files := generate(".")
	files[ofServer+".gz"] = packed(files[ofServer])
	for name, text := range files {
		must(0, os.WriteFile(name, text, 0o644))
	}
}

// packed is what the program holds of a file.
func packed(text []byte) []byte {
	var b bytes.Buffer
	w := must(gzip.NewWriterLevel(&b, gzip.BestCompression))
	must(w.Write(text))
	must(0, w.Close())
	return b.Bytes()
}

// must gives v. With an error the program ends, before anything was written.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatalf("%v (files are read from the root of the module)", err)
	}
	return v
}

// generate gives the files by name, with the contents that they should have. What no file can be made of ends the program.
func generate(root string) map[string][]byte {
	g := read(root)
	files := map[string][]byte{}
	for _, name := range []string{ofServer, ofHub} {
		hand, _, found := bytes.Cut(must(os.ReadFile(filepath.Join(root, name))), []byte(mark))
		if !found {
			log.Fatalf("%s: the line below which schemas are written is missing:\n%s", name, mark)
		}
		for line := range strings.Lines(string(hand)) {
			for _, m := range reference.FindAllStringSubmatch(line, -1) {
				g.want(m[1], strings.Contains(line, "requestBody:"))
			}
		}
		files[name] = append(append(hand, mark...), g.yaml(name)...)
	}
	files[ofServer] = append(files[ofServer], refusals()...)
	files[page] = g.typeScript()
	g.used()
	return files
}
