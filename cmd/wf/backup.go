package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/protocol"
	"wf/service/query"
	"wf/store"
)

func newStoreBackup(a *app) *cobra.Command {
	var o cas.BackupOptions
	var verify bool
	cmd := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy the store into a directory",
		Long: `Copy what the runs and memories of the store lead to into DIR, beside what earlier backups left there: a
second backup copies what is new. Others may go on working; wf gc is refused meanwhile. Everything is read and hashed. A backup that is cut
off leaves the one before as it was. Tokens, keys, pinned heads, the config and what was trusted are not copied.`,
		Example: `  wf store backup /mnt/backup/wf
  wf store backup /mnt/backup/wf --gentle --verify
  wf store backup /mnt/backup/wf -o json`,
		Args: takes(1, 1, "a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.WithDirectory(ctx, "pg_basebackup and pg_dump back a database up; wf store copy copies runs into a directory", func(s *cas.Store) error { return a.backup(ctx, s, args[0], o, verify) })
		},
	}
	cmd.Flags().BoolVar(&o.Gentle, "gentle", false, "leave the machine to others for most of the time")
	cmd.Flags().BoolVar(&verify, "verify", false, "read the whole backup again")
	return cmd
}

// progressEvery is how often the command says how far a backup is.
const progressEvery = 5 * time.Second

func (a *app) backup(ctx context.Context, s *cas.Store, dir string, o cas.BackupOptions, verify bool) error {
	told := time.Now()
	o.Progress = func(done, of int64) {
		if time.Since(told) >= progressEvery {
			told = time.Now()
			a.Progress("%d of about %d MB", done/1e6, of/1e6)
		}
	}
	r, err := cas.Backup(ctx, s, dir, o)
	if err == nil && verify {
		_, err = cas.VerifyBackup(ctx, dir)
	}
	if err != nil {
		return err
	}
	for _, what := range r.Excluded {
		a.Progress("not copied: %s", what)
	}
	return a.Say(r, "backup of %s in %s: %s, %d bytes, of them %d copied now\n", protocol.Plural(r.Heads, "head"), dir, protocol.Plural(r.Packs, "pack"), r.Bytes, r.Copied)
}

func newStoreRestore(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore DIR [TO]",
		Short: "Make a store of a backup",
		Long: `Make a store of the backup in DIR, in the directory TO, which is empty or does not exist; without TO where
--store says, or the store would be found. All of it is proved first. Nothing goes on in it, no run, timer or schedule, until
wf store adopt has listed its runs: other copies of them may have gone on elsewhere.`,
		Example: `  wf store restore /mnt/backup/wf .wf
  wf store adopt --store .wf`,
		Args: takes(1, 2, "the directory of a backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			to := ""
			if len(args) == 2 {
				to = args[1]
			}
			return a.restore(cmd.Context(), args[0], to)
		},
	}
	return cmd
}

func (a *app) restore(ctx context.Context, dir, to string) (err error) {
	if to == "" {
		if to, _, err = a.StoreName(); err != nil {
			return err
		}
	}
	if err := store.OfDirectory(to, "restore into a directory with wf store restore DIR TO"); err != nil {
		return err
	}
	m, err := cas.Restore(ctx, dir, to, time.Now().UnixMicro(), cas.Options{})
	if err != nil {
		return err
	}
	return a.Say(map[string]any{"schema": "wf.restored/v1", "store": to, "backup": dir, "made": query.Stamp(m.At), "heads": m.Heads.Count, "bytes": m.Bytes, "held": true},
		"restored %s from the backup of %s; nothing goes on in it before  wf store adopt --store %s\n", to, query.Stamp(m.At), protocol.ShellWord(to))
}
