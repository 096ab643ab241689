package postgres

import "testing"

func TestCountInserted(t *testing.T) {
	for sql, want := range map[string]int64{
		`INSERT INTO t (a, b) VALUES ($1, lower($2))`:                                              1,
		"insert into t values (1), ((2)),\n(3) -- (4)\n":                                           3,
		`INSERT INTO t (a) VALUES ($1) ON CONFLICT (a) DO UPDATE SET a = excluded.a`:               1,
		`INSERT INTO t (a) VALUES (')('), ('VALUES (')`:                                            2,
		`INSERT INTO t (a) VALUES ($1) ON CONFLICT DO NOTHING`:                                     0,
		`INSERT INTO t (a) VALUES ($1) ON CONFLICT (a) DO UPDATE SET a = excluded.a WHERE t.a = 1`: 0,
		`INSERT INTO t (a) VALUES ($1) RETURNING a`:                                                0,
		`INSERT INTO t (a) SELECT $1`:                                                              0,
		`INSERT INTO t (a) VALUES ((SELECT 1))`:                                                    0,
		`INSERT INTO t DEFAULT VALUES`:                                                             0,
		`UPDATE t SET a = $1`:                                                                      0,
		`WITH x AS (INSERT INTO t VALUES (1)) INSERT INTO u VALUES (2)`:                            0,
		``: 0,
	} {
		if got := parseText(sql).inserts; got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
}

func TestParseText_CountsArguments(t *testing.T) {
	for sql, want := range map[string]int{
		`SELECT 1`: 0, `SELECT $2, $1, $2`: 2, `SELECT '$7', "$8" -- $9`: 0, `SELECT $1/* $5 */+$3`: 3, `SELECT $99999999999999999999`: 0, `SELECT 'it''s $4'`: 0,
	} {
		if got := parseText(sql).args; got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
}

func TestPortable_ChangesTypesOnly(t *testing.T) {
	const sql = `CREATE TABLE t (text TEXT, n INTEGER, d TEXT DEFAULT 'TEXT', "TEXT" BIGINT); -- TEXT
SELECT CAST(n AS TEXT) FROM t`
	const want = `CREATE TABLE t (text TEXT COLLATE "C", n BIGINT, d TEXT COLLATE "C" DEFAULT 'TEXT', "TEXT" BIGINT); -- TEXT
SELECT CAST(n AS TEXT) FROM t`
	if got := portable(sql); got != want {
		t.Errorf("got %s", got)
	}
}

func TestCheckVersion(t *testing.T) {
	for version, ok := range map[string]bool{
		"15.8 (Debian 15.8-0+deb12u1)": true, "17beta1": true, "16.2": true, "14.11": false, "9.6.24": false, "unknown": true,
	} {
		if got := isSupported(version); got != ok {
			t.Errorf("%s: %v, want %v", version, got, ok)
		}
	}
}
