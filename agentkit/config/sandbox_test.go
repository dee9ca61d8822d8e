package config

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"wf/agentkit/sandbox"
)

func TestASandboxIsOpenedByName(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	real, err := filepath.EvalSymlinks(home)
	if err != nil {
		t.Fatal(err)
	}
	user, err := Parse("user", "sandbox: {read: [~/models, /srv/data/], devices: [/dev/kvm], limits: {file_size: 100, processes: 5, memory: 8, disk: 9}}")
	if err != nil {
		t.Fatal(err)
	}
	project, err := Parse("project", "sandbox: {read: [/opt/tool], sockets: [ssh-agent], devices: [/dev/fuse], limits: {file_size: 7, disk: 3}}")
	if err != nil {
		t.Fatal(err)
	}
	both := project.over(user).Sandbox
	got, err := both.Readable()
	if want := []string{filepath.Join(home, "models"), "/srv/data", "/opt/tool"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v (%v), want %v", got, err, want)
	}
	if !slices.Equal(both.Sockets, []string{SSHAgent}) || !slices.Equal(both.Devices, []string{"/dev/kvm", "/dev/fuse"}) {
		t.Errorf("sockets %q, devices %q", both.Sockets, both.Devices)
	}
	if both.Limits != (sandbox.Limits{FileSize: 7, Processes: 5, Memory: 8, Disk: 3}) {
		t.Errorf("limits %+v", both.Limits)
	}
	for _, whole := range []string{"/", "~/", "~/..", home, filepath.Dir(real)} {
		if _, err := (Sandbox{Read: []string{whole}}).Readable(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v, want an error wrapping ErrConfig", whole, err)
		}
	}
	for _, text := range []string{"sandbox: {read: [data]}", "sandbox: {read: ['']}", "sandbox: {limits: {file_size: -1}}", "sandbox: {write: [/]}",
		"sandbox: {sockets: [docker]}", "sandbox: {sockets: [/run/docker.sock]}", "sandbox: {devices: [kvm]}", "sandbox: {devices: [/dev/../etc/passwd]}"} {
		if _, err := Parse("bad", text); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v, want an error wrapping ErrConfig", text, err)
		}
	}
}
