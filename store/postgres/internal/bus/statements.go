package bus

// Notify sends the notifications of a group: $1 is [Bus.Channel], $2 holds [Group.Payloads]. It belongs at the end of the
// group's transaction, because PostgreSQL lets only one transaction at a time commit notifications.
const Notify = `SELECT pg_notify($1, payload) FROM unnest($2::text[]) payload`

// The tables are unlogged: their content is worth nothing after a crash of the server. They are empty then, as they are on
// a standby that has become the primary. Nodes of different versions of the program use them, so that columns may only be
// added. The transaction that creates them must survive a crash, after which they would be taken for new.
//
//   - kontor_cluster has one row. since is the time at which the row was made, or 0 when the tables were made with it, before
//     any node had a lease. leader is the node that leads, and beats counts its heartbeats.
//   - kontor_nodes has a row for each connection to the bus. node is the id of the process. beats counts heartbeats.
//   - kontor_acks holds the last strict change of the process publisher that the connection listener has acknowledged.
const createTables = `
	SELECT set_config('synchronous_commit', 'on', TRUE);
	SELECT pg_advisory_xact_lock(hashtextextended('kontor bus ' || current_schema(), 0));
	CREATE UNLOGGED TABLE IF NOT EXISTS kontor_cluster (
		one BOOLEAN PRIMARY KEY CHECK (one),
		since BIGINT NOT NULL,
		leader TEXT COLLATE "C" NOT NULL DEFAULT '',
		beats BIGINT NOT NULL DEFAULT 0
	) WITH (fillfactor = 10);
	CREATE UNLOGGED TABLE IF NOT EXISTS kontor_nodes (
		id TEXT COLLATE "C" PRIMARY KEY,
		node TEXT COLLATE "C" NOT NULL,
		name TEXT NOT NULL,
		version TEXT NOT NULL,
		started BIGINT NOT NULL,
		backend INTEGER NOT NULL,
		beats BIGINT NOT NULL DEFAULT 0
	) WITH (fillfactor = 10);
	CREATE UNLOGGED TABLE IF NOT EXISTS kontor_acks (
		publisher TEXT COLLATE "C",
		listener TEXT COLLATE "C",
		tag TEXT NOT NULL,
		PRIMARY KEY (publisher, listener)
	) WITH (fillfactor = 10);
	INSERT INTO kontor_cluster (one, since) VALUES (TRUE, 0) ON CONFLICT DO NOTHING`

// The names of the statements of a connection, and their texts.
const (
	stmtSetUp = "set_up"
	stmtJoin  = "join"
	stmtLeave = "leave"
	stmtBeat  = "beat"
	stmtClaim = "claim"
	stmtPoll  = "poll"
	stmtAck   = "ack"
	stmtSweep = "sweep"
	stmtEnd   = "end"
)

// serverTime is the server's clock in microseconds of Unix time.
const serverTime = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// selectServer returns who the server is: it follows sessionSettings.
const selectServer = `
	SELECT pg_backend_pid(), coalesce(current_schema()::regnamespace::oid::bigint::text, ''), pg_is_in_recovery(),
		to_regclass(quote_ident(current_schema()) || '.kontor_acks') IS NOT NULL, ` + serverTime

var statements = map[string]string{
	// After a crash of the server the tables are empty.
	stmtSetUp: `INSERT INTO kontor_cluster (one, since) VALUES (TRUE, ` + serverTime + ` / 1000) ON CONFLICT DO NOTHING`,

	// $2 is the id of an earlier connection of the same process.
	stmtJoin: `
		WITH earlier AS (DELETE FROM kontor_nodes WHERE id = $2), acks AS (DELETE FROM kontor_acks WHERE listener = $2)
		INSERT INTO kontor_nodes (id, node, name, version, started, backend)
		VALUES ($1, $3, $4, $5, $6::bigint, pg_backend_pid())`,

	// $2 is the id of the process.
	stmtLeave: `
		WITH resigned AS (UPDATE kontor_cluster SET leader = '', beats = beats + 1 WHERE leader = $1),
			acks AS (DELETE FROM kontor_acks WHERE listener = $1 OR publisher = $2)
		DELETE FROM kontor_nodes WHERE id = $1`,

	// A heartbeat. A leader confirms in the same statement that it still leads. The rows of the nodes are those before it.
	stmtBeat: `
		WITH beat AS (UPDATE kontor_nodes SET beats = beats + 1 WHERE id = $1 RETURNING id),
			confirmed AS (UPDATE kontor_cluster SET beats = beats + 1 WHERE leader = $1 RETURNING one)
		SELECT ` + serverTime + `, pg_backend_pid(), EXISTS (SELECT FROM beat), EXISTS (SELECT FROM confirmed),
			c.since, c.leader, c.beats, n.id, n.node, n.name, n.version, n.started, n.beats, n.backend
		FROM kontor_cluster c LEFT JOIN kontor_nodes n ON TRUE`,

	// Takes over from a leader that has not confirmed since beats was $3.
	stmtClaim: `
		UPDATE kontor_cluster SET leader = $1, beats = beats + 1 WHERE leader = $2 AND beats = $3::bigint RETURNING one`,

	stmtPoll: `
		SELECT n.id, n.beats, coalesce(a.tag, '')
		FROM kontor_nodes n LEFT JOIN kontor_acks a ON a.publisher = $1 AND a.listener = n.id`,

	// $2 and $3 are arrays of publishers and tags. Unknown publishers are left out: they are forged, or have stopped.
	stmtAck: `
		INSERT INTO kontor_acks (publisher, listener, tag)
		SELECT a.publisher, $1, a.tag
		FROM unnest($2::text[], $3::text[]) a (publisher, tag)
		WHERE EXISTS (SELECT FROM kontor_nodes n WHERE n.node = a.publisher)
		ON CONFLICT (publisher, listener) DO UPDATE SET tag = excluded.tag`,

	// Removes a node that has been silent since beats was $2, and acknowledgements that are not needed any more.
	stmtSweep: `
		WITH gone AS (DELETE FROM kontor_nodes WHERE id = $1 AND beats = $2::bigint RETURNING id)
		DELETE FROM kontor_acks a
		WHERE NOT EXISTS (SELECT FROM kontor_nodes n WHERE n.id = a.listener AND n.id <> $1)
			OR NOT EXISTS (SELECT FROM kontor_nodes n WHERE n.node = a.publisher AND n.id <> $1)`,

	// Ends the connection of a node that was removed. If its process is stopped, the server would keep notifications for it.
	stmtEnd: `
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE pid = $1::integer AND application_name = $2 AND datname = current_database()`,
}

// sessionSettings make a connection independent of the settings of the database and of its user.
const sessionSettings = `
	SET application_name = '%s'; SET synchronous_commit = off; SET statement_timeout = '5s'; SET lock_timeout = '5s';
	SET idle_session_timeout = 0; SET default_transaction_read_only = off; SET default_transaction_isolation = 'read committed';
	SET client_min_messages = error;`
