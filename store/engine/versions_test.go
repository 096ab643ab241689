package engine_test

import (
	"slices"
	"strings"
	"testing"

	"kontor/store/engine"
)

func TestWrittenTables(t *testing.T) {
	for sql, want := range map[string]string{
		`SELECT * FROM a`:                                                       "",
		`INSERT INTO a (x) VALUES ($1)`:                                         "a",
		"insert\n\tinto A(x) select x from b where true":                        "a",
		`INSERT INTO a (x) VALUES ($1) ON CONFLICT (x) DO UPDATE SET y = 1`:     "a",
		`INSERT OR REPLACE INTO a VALUES (1)`:                                   "a",
		`UPDATE a SET x = (SELECT 1 FROM b)`:                                    "a",
		`UPDATE OR IGNORE a SET x = 1`:                                          "a",
		`UPDATE "a" SET x = 'delete from c'`:                                    "a",
		`DELETE FROM a WHERE x IN (SELECT y FROM b)`:                            "a",
		`WITH old AS (SELECT id FROM b) DELETE FROM a WHERE id IN (TABLE old)`:  "a",
		`WITH d AS (DELETE FROM a RETURNING x) INSERT INTO b SELECT * FROM d`:   "a b",
		"-- update c set\n/* delete from d */ UPDATE a SET x = 'it''s', y = $1": "a",
		``: "", `update`: "", `'`: "", `/*`: "",
	} {
		if got := strings.Join(engine.WrittenTables(sql), " "); got != want {
			t.Errorf("%s\n\tgot %q, want %q", sql, got, want)
		}
	}
}

func FuzzWrittenTables(f *testing.F) {
	for _, s := range []string{`UPDATE a SET x = 'y'`, `/* */ insert into "a"`, `--`, `update or`, `'' "`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		found := engine.WrittenTables(sql)
		sorted := slices.Clone(found)
		slices.Sort(sorted)
		if len(slices.Compact(sorted)) != len(found) {
			t.Errorf("a table is named twice: %q", found)
		}
		// A statement after it is found, unless it is inside a comment or a quote.
		if !strings.ContainsAny(sql, `'"/-`) && !slices.Contains(engine.WrittenTables(sql+" ; DELETE FROM zz"), "zz") {
			t.Errorf("%q hides what follows", sql)
		}
	})
}
