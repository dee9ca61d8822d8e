package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// A Finding is a setting of a database with which a store is not safe, or not as it should be.
type Finding struct {
	Setting, Actual, Want string
	Fatal                 bool // a store is not opened with it
}

func (f Finding) String() string {
	return fmt.Sprintf("%s is %s, want %s", f.Setting, f.Actual, f.Want)
}

// MinVersion is the oldest server that is supported, as server_version_num says it.
const MinVersion = 140000

// idleLimit is what idle_in_transaction_session_timeout should be at most, in ms: a client that died in a transaction holds rows.
const idleLimit = 10_000

const readSettings = `select version(), current_setting('server_version_num'), current_setting('server_encoding'), current_setting('fsync'),
	current_setting('full_page_writes'), current_setting('synchronous_commit'), pg_is_in_recovery()::text,
	(select setting from pg_settings where name = 'idle_in_transaction_session_timeout'), current_setting('data_checksums')`

// Settings are the findings of a connection, through whatever pooler it leads.
func Settings(ctx context.Context, c *Conn) (version string, out []Finding, err error) {
	got, err := c.Query(ctx, readSettings)
	if err != nil {
		return "", nil, err
	}
	v := make([]string, len(got[0]))
	for i, b := range got[0] {
		v[i] = string(b)
	}
	return v[0], judge(v), nil
}

// judge is the findings about the columns of readSettings.
func judge(v []string) (out []Finding) {
	find := func(bad, fatal bool, setting, actual, want string) {
		if bad {
			out = append(out, Finding{setting, actual, want, fatal})
		}
	}
	number, err := strconv.Atoi(v[1])
	engine := strings.HasPrefix(v[0], "PostgreSQL ") && !strings.Contains(v[0], "-YB-")
	find(!engine, true, "the engine", v[0], "PostgreSQL itself: others that speak its protocol have not passed the tests of this store")
	find(err != nil || number < MinVersion, true, "server_version_num", v[1], strconv.Itoa(MinVersion)+" or later")
	find(v[2] != "UTF8", true, "server_encoding", v[2], "UTF8")
	find(v[3] != "on", true, "fsync", v[3], "on")
	find(v[4] != "on", true, "full_page_writes", v[4], "on")
	find(v[5] == "off", true, "synchronous_commit of this role", v[5], "on")
	find(v[6] != "false", true, "pg_is_in_recovery", v[6], "false: a standby is not written")
	idle, err := strconv.Atoi(v[7])
	find(err != nil || idle == 0 || idle > idleLimit, false, "idle_in_transaction_session_timeout", v[7]+" ms", "10s: alter role … set idle_in_transaction_session_timeout = '10s'")
	find(v[8] != "on", false, "data_checksums", v[8], "on: damage of indexes is then noticed")
	return out
}
