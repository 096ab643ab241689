package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kontor/store"
	"kontor/store/audittrail"
)

const (
	// exportBatch is how many entries leave at once, behind which a signed head and the position are written.
	exportBatch = 500
	// exportPause is how often the trail is looked at for new entries.
	exportPause = time.Second
	// maxExportPause is the longest wait after failures.
	maxExportPause = time.Minute
	// saveTime is how long the position of a batch may take to be written.
	saveTime = 10 * time.Second
)

// sink takes batches of the trail.
type sink interface {
	// target names the sink, so that its position is found again.
	target() string
	// write hands a batch over. After an error the whole batch comes again.
	write(ctx context.Context, b audittrail.ExportBatch) error
	// close gives up what is open.
	close()
}

// exporter carries the trail to one sink, beside everything else: a sink that is slow or gone delays nobody but itself.
// The position is written behind each batch that was handed over, so that after a restart every entry comes at least once.
type exporter struct {
	db   *store.DB
	log  *slog.Logger
	sink sink

	cancel  context.CancelFunc
	finish  chan struct{} // closed when the exporter is to carry over what is left and end
	once    sync.Once
	running sync.WaitGroup
}

// StartExport carries the trail to a file and to a syslog server from now on; an empty name leaves one out. It returns an
// error for an address that is none. [Service.Close] ends it.
func (s *Service) StartExport(file, syslogURL string) error {
	var sinks []sink
	if file != "" {
		sinks = append(sinks, &fileSink{path: file})
	}
	if syslogURL != "" {
		syslog, err := newSyslogSink(syslogURL)
		if err != nil {
			return err
		}
		sinks = append(sinks, syslog)
	}
	for _, one := range sinks {
		ctx, cancel := context.WithCancel(context.Background())
		e := &exporter{db: s.db, log: s.log, sink: one, cancel: cancel, finish: make(chan struct{})}
		e.running.Go(func() { e.run(ctx) })
		s.exporters = append(s.exporters, e)
	}
	return nil
}

// stop carries over what is left, for as long as the context lasts, and ends the exporter.
func (e *exporter) stop(ctx context.Context) {
	e.once.Do(func() { close(e.finish) })
	cut := context.AfterFunc(ctx, e.cancel)
	e.running.Wait()
	cut()
	e.cancel()
}

// run looks for new entries until the exporter is stopped.
func (e *exporter) run(ctx context.Context) {
	defer e.sink.close()
	pause := exportPause
	timer := time.NewTimer(0)
	defer timer.Stop()
	failing, version, known := false, uint64(0), false
	for last := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-e.finish:
			last = true
		case <-timer.C:
		}
		now := e.db.Version("audit_entries")
		var err error
		if !known || now != version {
			err = e.carry(ctx)
		}
		version, known = now, err == nil
		switch {
		case last:
			return
		case err == nil:
			pause = exportPause
			if failing {
				e.log.Info("the audit trail is exported again", "target", e.sink.target())
			}
		case ctx.Err() == nil:
			if !failing { // once, until it works again
				e.log.Error("the audit trail cannot be exported; nothing is lost, it is tried again", "target", e.sink.target(), "cause", err)
			}
			pause = min(2*pause, maxExportPause)
		}
		failing = err != nil
		timer.Reset(pause)
	}
}

const (
	selectExported = `SELECT seq FROM audit_exports WHERE target = $1`

	upsertExported = `
		INSERT INTO audit_exports (target, seq, at) VALUES ($1, $2, $3)
		ON CONFLICT (target) DO UPDATE SET seq = excluded.seq, at = excluded.at`
)

// carry hands over everything behind the position.
func (e *exporter) carry(ctx context.Context) error {
	var position int64
	err := e.db.QueryRow(ctx, selectExported, e.sink.target()).Scan(&position)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("read the position: %w", err)
	}
	for {
		b, err := e.db.ExportAfter(ctx, position, exportBatch)
		if err != nil {
			return fmt.Errorf("read the trail: %w", err)
		}
		if len(b.Entries) == 0 {
			return nil
		}
		if err := e.sink.write(ctx, b); err != nil {
			return err
		}
		position = b.Entries[len(b.Entries)-1].Seq
		if err := e.save(position); err != nil {
			return fmt.Errorf("write the position: %w", err)
		}
		if len(b.Entries) < exportBatch {
			return nil
		}
	}
}

// save writes how far the sink has come. A stop does not keep it from doing so: what was handed over need not come again.
func (e *exporter) save(position int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), saveTime)
	defer cancel()
	return e.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, upsertExported, e.sink.target(), position, tx.Now())
		return err
	})
}
