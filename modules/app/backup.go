package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"kontor/store/backup/continuous"
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
		Target: target, Key: func() continuous.Key { return continuous.KeyOf(m.DB.BackupKey()) }, WholeEvery: s.WholeEvery, Retain: s.Keep,
		Spool: m.DB.Dir(), Clock: m.DB.Clock(), Log: m.Log,
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

// backupMetrics are the metrics of the continuous backup. They are 0 without one.
func (m *Modules) backupMetrics() []prometheus.Collector {
	of := func(value func(continuous.Status) float64) func() float64 {
		return func() float64 {
			shipper := m.backup.Load()
			if shipper == nil {
				return 0
			}
			return value(shipper.Status())
		}
	}
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kontor_backup_state_timestamp_seconds",
			Help: "Time of the latest state in the target of the continuous backup; 0 before the first."},
			of(func(s continuous.Status) float64 { return float64(s.At) / 1000 })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kontor_backup_failing",
			Help: "1 if the latest attempt of the continuous backup has failed."},
			of(func(s continuous.Status) float64 { return gaugeOf(s.Failing != nil) })),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "kontor_backup_objects_total",
			Help: "Objects that the continuous backup has stored."},
			of(func(s continuous.Status) float64 { return float64(s.Shipped) })),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "kontor_backup_bytes_total",
			Help: "Bytes that the continuous backup has stored."},
			of(func(s continuous.Status) float64 { return float64(s.Bytes) })),
	}
}
