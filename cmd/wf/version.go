package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"wf/protocol"
)

// release is set by the linker of a release build.
var release = ""

// version is the release, or what the build knows of its source.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

type versionJSON struct {
	Schema    string `json:"schema"`
	Version   string `json:"version"`
	Go        string `json:"go"`
	Platform  string `json:"platform"`
	Format    int    `json:"format"`
	Semantics int    `json:"semantics"`
	Record    int    `json:"record"`
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version, and which records it writes",
		Example: `  wf version
  wf version -o json`,
		Args: takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			v := versionJSON{
				"wf.version/v1", version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH,
				protocol.Format, protocol.Semantics, protocol.RecordVersion,
			}
			return a.Say(v, "wf %s (%s, %s)\nrecords v%d, messages v%d, rules v%d\n",
				v.Version, v.Go, v.Platform, v.Record, v.Format, v.Semantics)
		},
	}
}
