package compose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"wf/protocol"
	"wf/roles/workspace/appear"
)

// What wf serve takes for a workflow is told when a command leaves it, in whatever form and under whatever kind of entry.
func TestWhatADaemonTakesForAWorkflowIsTold(t *testing.T) {
	const flow = "wf: 1\nname: nightly\non: {schedule: \"@daily\"}\nroles: {a: {set: {n: 1}}}\n"
	const rest = "name: nightly\nroles: {a: {set: {n: 1}}}\n"
	wide := "\xff\xfe"
	for _, c := range utf16.Encode([]rune(flow)) {
		wide += string([]byte{byte(c), byte(c >> 8)})
	}
	type made struct {
		name string
		make func(write func(name, text string), at func(name string) string) error
	}
	var all []made
	for name, text := range map[string]string{
		"plain": flow, "a comment before": "# x\n---\n" + flow, "a mark": "\ufeff" + flow, "UTF-16": wide, "old line ends": strings.ReplaceAll(flow, "\n", "\r"), "two line ends": strings.ReplaceAll(flow, "\n", "\r\n"),
		"in braces": `{wf: 1, name: nightly, roles: {a: {set: {n: 1}}}}`, "in braces below": "{\nwf: 1, name: nightly, roles: {a: {set: {n: 1}}}}", "a long key": "? wf\n: 1\n" + rest, "quoted": "'wf': 1\n" + rest, "escaped": "\"\\x77f\": 1\n" + rest,
		"an anchor": "&a wf: 1\n" + rest, "a tag": "!!str wf: 1\n" + rest, "moved in": " wf: 1\n name: nightly\n roles: {a: {set: {n: 1}}}\n", "another line end": "name: nightly\u2028wf: 1\n" + rest, "behind a directive": "%YAML 1.2\n---\n" + flow,
		"spaces": "wf  : 1\n" + rest, "not valid": "wf: [\n", "twice": "a: 1\n---\n" + flow, "in a text": "a: |\n  x\nwf: 1\n" + rest,
	} {
		all = append(all, made{name, func(write func(name, text string), _ func(string) string) error {
			write("nightly.yaml", text)
			return nil
		}})
	}
	link := func(from, to string) func(func(string, string), func(string) string) error {
		return func(write func(string, string), at func(string) string) error {
			write("kept/it.txt", flow)
			write("kept/it.yaml", flow)
			if err := os.MkdirAll(filepath.Dir(at(to)), 0o755); err != nil {
				return err
			}
			return os.Symlink(from, at(to))
		}
	}
	all = append(all,
		made{"another name", func(write func(string, string), _ func(string) string) error {
			write("workflows/nightly.yml", flow)
			return nil
		}},
		made{"a link", link("kept/it.txt", "nightly.yaml")},
		made{"a link among them", link("../kept/it.txt", "workflows/nightly.yaml")},
		made{"a directory that is a link", link("kept", "workflows")},
		made{"a hard link", func(write func(string, string), at func(string) string) error {
			write("kept/it.txt", flow)
			return os.Link(at("kept/it.txt"), at("nightly.yaml"))
		}},
		made{"a renamed file", func(write func(string, string), at func(string) string) error {
			write("it.txt", flow)
			return os.Rename(at("it.txt"), at("nightly.yaml"))
		}},
		made{"a renamed directory", func(write func(string, string), at func(string) string) error {
			write("kept/it.yaml", flow)
			return os.Rename(at("kept"), at("workflows"))
		}},
		made{"large letters", func(write func(string, string), at func(string) string) error {
			write("nightly.YAML", flow)
			write("nightly.yaml.yml", flow)
			return nil
		}},
	)
	for _, x := range all {
		t.Run(x.name, func(t *testing.T) {
			root := t.TempDir()
			for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
				t.Setenv(name, t.TempDir())
			}
			at := func(name string) string { return filepath.Join(root, name) }
			write := func(name, text string) {
				if err := os.MkdirAll(filepath.Dir(at(name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at(name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			watch, err := appear.Of(root)
			if err != nil {
				t.Fatal(err)
			}
			span := watch.Begin()
			if err := x.make(write, at); err != nil {
				t.Fatal(err)
			}
			told := map[string]bool{}
			if a := span.End(); a != nil {
				for _, f := range a.Found {
					told[f.Path] = f.Kind == protocol.FoundWorkflow
				}
			}
			catalog, err := (&Setup{}).NewCatalog(nil, at(".wf"))
			if err != nil {
				t.Fatal(err)
			}
			served, err := catalog.List()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range served {
				path, err := filepath.Rel(root, f.Path)
				if err != nil {
					t.Fatal(err)
				}
				if !told[path] && !told[filepath.Dir(path)] { // of a directory that is a link
					t.Errorf("%s is served (%v), and told is %v", path, f.Problem, told)
				}
				if f.Program != nil && f.Program.Workflow.Schedule != nil && f.Scheduled() == nil {
					t.Errorf("the clock starts %s", path)
				}
			}
		})
	}
}
