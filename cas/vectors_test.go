package cas

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/protocol"
)

// vectors finds the test vectors made by others; they are not copied into this tree.
func vectors(t testing.TB, path string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		try := filepath.Join(dir, "..", "shared", "vectors", path)
		if _, err := os.Stat(try); err == nil {
			return try
		}
		if dir == filepath.Dir(dir) {
			t.Skipf("no ../shared/vectors/%s above the package", path)
		}
	}
}

func TestCodecFixturesKeepTheirCIDs(t *testing.T) {
	root := vectors(t, "codec-fixtures/fixtures")
	files, err := filepath.Glob(filepath.Join(root, "*", "*.dag-cbor"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures in %s: %v", root, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.TrimSuffix(filepath.Base(file), ".dag-cbor")
			b, err := Put("dag-cbor", data)
			if err != nil || b.Link.String() != want {
				t.Errorf("Put(dag-cbor) = %s, %v; want %s", b.Link, err, want)
			}
			if err := Check(b.Link, data); err != nil {
				t.Error(err)
			}
			twins, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.dag-json"))
			if err != nil || len(twins) != 1 {
				t.Fatalf("want one DAG-JSON twin, have %d: %v", len(twins), err)
			}
			twin, err := os.ReadFile(twins[0])
			if err != nil {
				t.Fatal(err)
			}
			j, err := Put("dag-json", twin)
			if err != nil || !bytes.Equal(j.Data, data) {
				t.Errorf("Put(dag-json) = % x, %v; want % x", head(j.Data), err, head(data))
			}
			shown, err := ToJSON(data)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(shown, bytes.TrimSpace(twin)) {
				t.Errorf("ToJSON gives %s, want %s", head(shown), head(twin))
			}
			if again, err := Put("dag-json", shown); err != nil || again.Link != b.Link {
				t.Errorf("ToJSON does not read back: %s, %v", again.Link, err)
			}
		})
	}
	t.Logf("%d fixtures", len(files))
}

func head(b []byte) []byte { return b[:min(len(b), 32)] }

func TestNegativeFixturesAreRefused(t *testing.T) {
	for _, codec := range []string{"dag-cbor", "dag-json"} {
		raw, err := os.ReadFile(vectors(t, "codec-fixtures/negative-fixtures/"+codec+"/decode/duplicate-keys.json"))
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct{ Name, Hex string }
		if err := json.Unmarshal(raw, &cases); err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			data, err := hex.DecodeString(c.Hex)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Put(codec, data); !errors.Is(err, protocol.ErrInvalidBlock) {
				t.Errorf("%s, %s: %v, want invalid_block", codec, c.Name, err)
			}
		}
	}
}
