package store

// The table meta keeps facts about the database itself.
const (
	metaKeyCheck  = "key_check"  // recognises the master key
	metaAuditHead = "audit_head" // the newest audit entry, signed

	metaCommits = "commits" // the number of the newest commit, compared with the mark

	metaWriteProbe = "write_probe" // empty but for a moment
)

const selectMeta = `SELECT value FROM meta WHERE name = $1`

const upsertMeta = `
	INSERT INTO meta (name, value) VALUES ($1, $2)
	ON CONFLICT (name) DO UPDATE SET value = excluded.value`
