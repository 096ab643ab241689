package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"kontor/modules/kit/revocable"
	"kontor/server"
	"kontor/server/metrics"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/backup/continuous"
	"kontor/store/datadir"
)

// errDeaf says that this node does not receive the changes of the others in time. It serves requests correctly and more slowly,
// because it reads from the database what it otherwise remembers.
var errDeaf = errors.New("this node does not receive the changes of other nodes; it asks the database for everything")

// checkCluster is the advisory probe of a node.
func (m *Modules) checkCluster(context.Context) error {
	if !m.DB.Remembers() {
		return errDeaf
	}
	return nil
}

// SharedSettings returns the text about the settings that must agree, for the row of a node.
func SharedSettings(r *settings.Result) string {
	text, err := json.Marshal(r.Shared()) // a map of texts cannot fail; the names are in their order
	if err != nil {
		return ""
	}
	return string(text)
}

// differences returns the names of the settings in which a node differs from this one. The settings of commands and of former versions
// are not known.
func differences(known []store.Node, n store.Node) (names []string) {
	own := slices.IndexFunc(known, func(n store.Node) bool { return n.Self })
	if own < 0 || n.Settings == known[own].Settings || n.Settings == "" || known[own].Settings == "" {
		return nil
	}
	var theirs, ours map[string]string
	if json.Unmarshal([]byte(n.Settings), &theirs) != nil || json.Unmarshal([]byte(known[own].Settings), &ours) != nil {
		return nil // another version's text
	}
	for _, one := range settings.All() {
		if theirs[one.Name] != ours[one.Name] {
			names = append(names, one.Name)
		}
	}
	return names
}

// checkSettings is the advisory probe of the settings that must agree.
func (m *Modules) checkSettings(context.Context) error {
	known := m.DB.Nodes()
	var others []string
	for _, n := range known {
		if names := differences(known, n); len(names) > 0 {
			others = append(others, n.Name+" ("+strings.Join(names, ", ")+")")
		}
	}
	if others == nil {
		return nil
	}
	return fmt.Errorf("settings that must agree differ from those of this node at: %s", strings.Join(others, "; "))
}

// warnOfSettings logs when the settings of nodes begin to differ, differ in another way, or agree again.
func (m *Modules) warnOfSettings(ctx context.Context) error {
	if !m.DB.Shared() {
		return nil
	}
	text := ""
	if err := m.checkSettings(ctx); err != nil {
		text = err.Error()
	}
	if before := m.warned.Swap(&text); before != nil && *before == text || before == nil && text == "" {
		return nil
	}
	if text == "" {
		m.Log.Info("the settings of the nodes agree again")
	} else {
		m.Log.Warn("nodes behave differently", "cause", text)
	}
	return nil
}

// nodes lists the nodes for readiness.
func (m *Modules) nodes() []server.NodeHealth {
	known := m.DB.Nodes()
	nodes := make([]server.NodeHealth, len(known))
	for i, n := range known {
		nodes[i] = server.NodeHealth{Name: n.Name, Self: n.Self, Leads: n.Leads, LagMS: n.Lag.Milliseconds(), Started: n.Started.String(), LeaseUntil: n.LeaseUntil.String(),
			OtherSettings: differences(known, n)}
	}
	return nodes
}

// addClusterMetrics adds the state of the cluster, as this node sees it, to a scrape. With a data directory the series exist, too:
// alerts need them.
func addClusterMetrics(s *metrics.Scrape, db *store.DB) {
	known, now := db.Nodes(), db.Now()
	leases, lag, backlog, others := 0, time.Duration(0), 0, 0
	for _, n := range known {
		if n.LeaseUntil == 0 || n.LeaseUntil > now {
			leases++
		}
		if len(differences(known, n)) > 0 {
			others++
		}
		if n.Self {
			lag, backlog = n.Lag, n.Backlog
		}
	}
	gauge := func(name, help string, value float64) { s.Gauge("kontor_cluster_"+name, help, value) }
	gauge("nodes", "Nodes that use the database, as this one sees them.", float64(len(known)))
	gauge("leases", "Nodes whose lease is valid.", float64(leases))
	gauge("leader", "1 if this node runs the jobs that run once for all nodes.", gaugeOf(db.Leads()))
	gauge("listening", "1 if this node receives the changes of others in time; otherwise it asks the database for everything.", gaugeOf(db.Remembers()))
	gauge("other_settings", "Nodes whose settings differ from those of this one although they must agree.", float64(others))
	gauge("lag_seconds", "Time since the last heartbeat of this node.", lag.Seconds())
	s.Counter("kontor_cluster_clock_steps_total", "How often the clock of the database server was set by more than a few seconds.", float64(db.Stats().ClockSteps))
	gauge("backlog", "Events of this node that are on the way through the database.", float64(backlog))
}

// Alive returns nil while the database serves reads and its writer makes progress. It does not return while the writer
// hangs. The watchdog calls it. Unlike readiness, it ignores errors that a restart does not repair, such as a full disk.
func (m *Modules) Alive(ctx context.Context) error {
	for _, probe := range []func() error{
		func() error { return m.DB.Ready(ctx) },
		func() error { return m.DB.InTx(ctx, func(*store.Tx) error { return nil }) },
	} {
		if err := probe(); err != nil && !outlastsRestart(err) {
			return err
		}
	}
	return nil
}

// outlastsRestart reports whether an error would occur again after a restart, or passes by itself.
func outlastsRestart(err error) bool {
	for _, kind := range []error{store.ErrBusy, store.ErrFull, store.ErrReadOnly, store.ErrCorrupt, store.ErrNewerSchema} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// memory says whether this process may use what it remembers of rights and keys. It implements [kontor/server.Memory].
type memory struct {
	*Modules
	loads revocable.Loader
}

// Remembers reports whether this process has received all announcements, and could read the changes, and whether no right has begun or
// ended since.
func (m *memory) Remembers() bool {
	return m.DB.Remembers() && m.DB.KeysCurrent() && !m.RBAC.TermsDue()
}

// held counts how often a module was held back because a right was due to begin or end.
type held struct{ changes, notifications, webhooks, imports, requests atomic.Int64 }

// termsDue returns a function that reports whether a right has begun or ended that the tables do not show yet. Streams and webhooks, which no
// request precedes, send nothing meanwhile: the job of this process writes the change.
func (m *Modules) termsDue(waits *atomic.Int64) func() bool {
	return func() bool {
		due := m.RBAC.TermsDue()
		if due {
			waits.Add(1)
		}
		return due
	}
}

// Renew reads the keys of the database and the policy again, as far as they have changed. Concurrent requests share one try.
func (m *memory) Renew(ctx context.Context) error {
	return m.loads.Do(ctx, func(ctx context.Context) error {
		if err := m.DB.RenewKeys(ctx); err != nil { // before what is sealed with them
			return err
		}
		return m.RBAC.Renew(ctx)
	})
}

// addMetrics adds the metrics of the modules and of the database to a scrape.
func (m *Modules) addMetrics(s *metrics.Scrape) {
	addStoreMetrics(s, m.DB)
	addClusterMetrics(s, m.DB)
	m.jobRuns.Add(s)
	m.Notifications.AddMetrics(s)
	m.Deliveries.AddMetrics(s)
	m.Screening.AddMetrics(s)
	m.addBackupMetrics(s)
}

// addStoreMetrics adds the metrics of the database to a scrape.
func addStoreMetrics(scrape *metrics.Scrape, db *store.DB) {
	s := db.Stats()
	gauge := func(name, help string, value float64) { scrape.Gauge("kontor_store_"+name, help, value) }
	counter := func(name, help string, value uint64) { scrape.Counter("kontor_store_"+name, help, float64(value)) }
	gauge("queue_length", "Transactions that wait for the writer.", float64(s.Queued))
	gauge("readers_waiting", "Queries that wait for a reader.", float64(s.Readers))
	gauge("last_progress_seconds", "Time since the writer last made progress.", s.Working.Seconds())
	gauge("stalled", "1 if a transaction or a sync to disk takes too long.", gaugeOf(s.Stalled))
	counter("writes_total", "Committed transactions.", s.Writes)
	counter("commits_total", "Groups of transactions that were synced together.", s.Commits)
	counter("writes_refused_total", "Transactions rejected because too many waited.", s.Refused)
	counter("queries_revoked_total", "Queries ended because their caller used too much while others waited.", s.Revoked)
	gauge("log_bytes", "Size of the write-ahead log.", float64(s.LogBytes))
	gauge("log_limit_bytes", "Size of the write-ahead log from which log_over_limit is 1.", float64(s.LogLimit))
	gauge("log_uncopied_pages", "Pages of the write-ahead log that are not in the database file yet.", float64(s.LogUncopied))
	gauge("log_over_limit", "1 if the write-ahead log is larger than its limit.", gaugeOf(s.LogOverLimit))
	timing := func(name, what string, t store.Timing) {
		counter(name+"_total", what+".", uint64(t.Count)) //nolint:gosec // never negative
		scrape.Counter("kontor_store_"+name+"_seconds_total", what+": their total duration.", t.Total.Seconds())
		gauge(name+"_last_seconds", what+": the duration of the last one.", t.Last.Seconds())
	}
	timing("syncs", "Syncs of the write-ahead log to disk", s.Sync)
	timing("checkpoints", "Checkpoints that copied pages into the database file", s.Checkpoint)
}

func gaugeOf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

// startBackup begins the continuous backup, when there is a target.
func (m *Modules) startBackup() error {
	s := m.Settings.Backup
	if s.URL == "" {
		return nil
	}
	target, err := continuous.Open(s.URL)
	if err != nil {
		return fmt.Errorf("backup.url: %w", err)
	}
	recorder, err := m.DB.Record()
	if errors.Is(err, errors.ErrUnsupported) {
		return errors.New("backup.url is for the database in data.dir; use the backups of PostgreSQL with data.url")
	}
	if err != nil {
		return fmt.Errorf("start the continuous backup: %w", err)
	}
	shipper := continuous.New(recorder, continuous.Options{
		Target: target, Key: func() continuous.Key { return continuous.KeyOf(m.DB.BackupKey()) }, Line: s.Line, WholeEvery: s.WholeEvery, Retain: s.Keep,
		Spool: m.DB.Dir(), Holder: datadir.Mounted(m.DB.Dir()), Log: m.Log,
	})
	m.backup.Store(shipper)
	shipper.Start()
	return nil
}

// stopBackup ships the last writes.
func (m *Modules) stopBackup(ctx context.Context) error {
	shipper := m.backup.Load()
	if shipper == nil {
		return nil
	}
	if err := shipper.Stop(ctx); err != nil {
		return fmt.Errorf("the continuous backup lacks the last writes: %w", err)
	}
	return nil
}

// checkBackup returns why the continuous backup does not work as the settings say.
func (m *Modules) checkBackup(ctx context.Context) error {
	if shipper := m.backup.Load(); shipper != nil {
		return shipper.Check(ctx)
	}
	return nil
}

// addBackupMetrics adds the metrics of the continuous backup to a scrape. They are 0 without one.
func (m *Modules) addBackupMetrics(s *metrics.Scrape) {
	var status continuous.Status
	if shipper := m.backup.Load(); shipper != nil {
		status = shipper.Status()
	}
	s.Gauge("kontor_backup_state_timestamp_seconds", "Time of the latest state in the target of the continuous backup; 0 before the first.", float64(status.At)/1000)
	s.Gauge("kontor_backup_failing", "1 if the latest attempt of the continuous backup has failed.", gaugeOf(status.Failing != nil))
	s.Gauge("kontor_backup_displaced", "1 if another server writes to the line of the continuous backup, so that this one ships to a line of its own.", gaugeOf(status.Displaced != nil))
	s.Gauge("kontor_backup_commits", "Number of the newest commit in the target of the continuous backup; 0 before the first.", float64(status.Commits))
	s.Counter("kontor_backup_objects_total", "Objects that the continuous backup has stored.", float64(status.Shipped))
	s.Counter("kontor_backup_bytes_total", "Bytes that the continuous backup has stored.", float64(status.Bytes))
}
