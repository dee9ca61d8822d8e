package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed strangers.sql
var findStrangers string

// A Place is a schema in which something of wf lies.
type Place struct {
	Schema string
	Meta   string   // its first table, whose owner owns the others too
	Own    []string // names of the tables, views and functions that are used
}

// Owner is the role that owns a place, and whether the role of the connection is that one, or may act as it. "" is that there is no such schema. Where
// it has no table yet the owner is that of the schema, and a role that may do anything is as good as any.
func (p Place) Owner(ctx context.Context, c *Conn) (role string, own bool, err error) {
	got, err := c.Query(ctx, `select o.owner::regrole::text, pg_has_role(o.owner, current_user, 'member') or pg_has_role(current_user, o.owner, 'member')
		from pg_namespace n left join pg_class m on m.relnamespace = n.oid and m.relname = $2, lateral (select coalesce(m.relowner, n.nspowner) as owner) o where n.nspname = $1`,
		Text(p.Schema), Text(p.Meta))
	if err != nil || len(got) == 0 {
		return "", false, err
	}
	return string(got[0][0]), got[0][1][0] == 1, nil
}

// Strangers are the findings about what other roles have in a place, or may put there: objects in its schema, what hangs on its tables and would run what is
// theirs with the rights of whoever writes a row, and the rights to make either. Others are all roles but the owner of the tables, those that may act as
// it, and superusers. A finding by which code of another role runs where the tables are used is fatal.
func Strangers(ctx context.Context, c *Conn, p Place) (out []Finding, err error) {
	got, err := c.Query(ctx, findStrangers, Text(p.Schema), Text(p.Meta), Texts(p.Own))
	if err != nil {
		return nil, err
	}
	for _, row := range got {
		var v [6]string
		for i := range v {
			v[i] = string(row[i])
		}
		kind, what, other, role, owner := v[0], v[1], v[2], v[3], v[4]
		fatal := v[5] == "true"
		switch kind {
		case "schema":
			out = append(out, Finding{what, "owned by " + role, fmt.Sprintf("the owner of its tables: alter schema %s owner to %s", p.Schema, owner), false})
		case "right":
			out = append(out, Finding{what, "a right of " + role, fmt.Sprintf("a right of %s alone: revoke %s from %s", owner, strings.Replace(what, " on ", " on "+other+" ", 1), role), false})
		case "object":
			out = append(out, Finding{what, "owned by " + role, fmt.Sprintf("gone, or owned by %s once it was looked at: drop %s  or  alter %s owner to %s", owner, what, what, owner), fatal})
		case "code":
			remedy := "alter " + other + " owner to " + owner
			if first, _, _ := strings.Cut(what, " "); first == "trigger" || first == "rule" || first == "policy" {
				remedy = "drop " + what + "  or  " + remedy
			}
			out = append(out, Finding{what, fmt.Sprintf("what runs %s of %s", other, role), fmt.Sprintf("gone, or its code owned by %s once it was looked at: %s", owner, remedy), fatal})
		}
	}
	return out, nil
}
