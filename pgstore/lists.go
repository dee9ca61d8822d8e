package pgstore

import (
	"context"

	"wf/cas"
)

var _ cas.Lists = (*Store)(nil)

// under is a condition that a name begins with a prefix; its parameters are $1 and $2. The second bound keeps the scan of
// the index short, which starts_with alone does not on PostgreSQL 14.
func under(column string) string {
	return column + ` >= $1 and ($2 = '' or ` + column + ` < $2) and starts_with(` + column + `, $1)`
}

// prefixed are the parameters of under.
func prefixed(prefix string) []param { return []param{text(prefix), text(above(prefix))} }

// above is a text that all texts with a prefix lie below, in the order of bytes; "" where none is that simple.
func above(prefix string) string {
	n := len(prefix) - 1
	if n < 0 || prefix[n] >= 0x7f {
		return ""
	}
	return prefix[:n] + string(prefix[n]+1)
}

// DerivedKeys lists the keys of derived values that begin with prefix, sorted; see cas.Lists.
func (s *Store) DerivedKeys(ctx context.Context, prefix string) (out []string, err error) {
	got, err := s.query(ctx, `select key from wf.derived where `+under("key")+` order by key`, prefixed(prefix)...)
	for _, r := range got {
		out = append(out, string(r[0]))
	}
	return out, err
}
