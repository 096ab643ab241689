package app

import (
	"context"
	"errors"
	"fmt"

	"kontor/server/metrics"
	"kontor/store/backup/continuous"
	"kontor/store/datadir"
)

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
