package postgres

import "testing"

func TestSettings(t *testing.T) {
	good := []string{"PostgreSQL 14.0 on x", "140000", "UTF8", "on", "on", "on", "false", "10000", "on"}
	if found := judge(good); len(found) > 0 {
		t.Errorf("the lowest that is good: %v", found)
	}
	for _, c := range []struct {
		at    int
		value string
		fatal bool
	}{
		{0, "CockroachDB CCL v24.1", true}, {0, "PostgreSQL 15.2-YB-2.25", true}, {1, "139999", true}, {1, "", true}, {2, "SQL_ASCII", true},
		{3, "off", true}, {4, "off", true}, {5, "off", true}, {6, "true", true}, {7, "0", false}, {7, "10001", false}, {8, "off", false},
	} {
		v := append([]string{}, good...)
		v[c.at] = c.value
		if found := judge(v); len(found) != 1 || found[0].Fatal != c.fatal || found[0].String() == "" {
			t.Errorf("%s: %v", c.value, found)
		}
	}
}
