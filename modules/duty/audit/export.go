package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"kontor/store"
	"kontor/store/audittrail"
)

const (
	// exportBatch is the number of entries that the exporter writes at once. A signed head follows each batch.
	exportBatch = 500
	// exportPause is the interval between checks for new entries.
	exportPause = time.Second
	// maxExportPause is the longest pause after failures.
	maxExportPause = time.Minute
	// savePositionTimeout limits the time to store the position after a batch.
	savePositionTimeout = 10 * time.Second
)

// sink is the target of an export.
type sink interface {
	// target returns the name of the sink, under which its position is stored.
	target() string
	// write writes a batch. After an error the exporter writes the whole batch again.
	write(ctx context.Context, b audittrail.ExportBatch) error
	// close releases open connections.
	close()
}

// exporter writes the trail to one sink in a goroutine of its own. A slow or unreachable sink therefore delays nothing else. The
// exporter stores its position after each batch. Every entry is delivered at least once, also across restarts. Of several nodes on
// one database the leader exports.
type exporter struct {
	db   *store.DB
	log  *slog.Logger
	sink sink

	cancel  context.CancelFunc
	finish  chan struct{} // closed to make the exporter write the remaining entries and end
	once    sync.Once
	running sync.WaitGroup
}

// StartExport starts exporting the trail to a file and to a syslog server. An empty argument means no such export. It returns an
// error for an invalid address. [Service.Close] ends the exports.
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

// stop exports the remaining entries until the context ends, and ends the exporter.
func (e *exporter) stop(ctx context.Context) {
	e.once.Do(func() { close(e.finish) })
	release := context.AfterFunc(ctx, e.cancel)
	e.running.Wait()
	release()
	e.cancel()
}

// run exports new entries until the exporter is stopped.
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
		if !e.db.Leads() { // another node exports
			if last {
				return
			}
			known = false
			timer.Reset(exportPause)
			continue
		}
		now, err := e.db.Version(ctx, "audit_entries")
		if err == nil && (!known || now != version) {
			err = e.export(ctx)
		}
		version, known = now, err == nil && e.db.Leads()
		switch {
		case last:
			return
		case err == nil:
			pause = exportPause
			if failing {
				e.log.Info("audit export works again", "target", e.sink.target())
			}
		case ctx.Err() == nil:
			if !failing { // log only the first of several failures
				e.log.Error("cannot export the audit trail; the export is retried and nothing is lost", "target", e.sink.target(), "cause", err)
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
		ON CONFLICT (target) DO UPDATE SET seq = excluded.seq, at = excluded.at WHERE audit_exports.seq < excluded.seq`
)

// export writes all entries after the stored position to the sink.
func (e *exporter) export(ctx context.Context) error {
	var position int64
	err := e.db.QueryRow(ctx, selectExported, e.sink.target()).Scan(&position)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("read the position of the export: %w", err)
	}
	for {
		b, err := e.db.ExportAfter(ctx, position, exportBatch)
		if err != nil {
			return fmt.Errorf("read the audit trail: %w", err)
		}
		if len(b.Entries) == 0 {
			return nil
		}
		if err := e.sink.write(ctx, b); err != nil {
			return err
		}
		position = b.Entries[len(b.Entries)-1].Seq
		if err := e.savePosition(position); err != nil {
			return fmt.Errorf("store the position of the export: %w", err)
		}
		if len(b.Entries) < exportBatch || !e.db.Leads() {
			return nil
		}
	}
}

// savePosition stores the position of the sink. It does not depend on the exporter's context, so that a stop does not make the
// next start repeat a batch that was delivered.
func (e *exporter) savePosition(position int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), savePositionTimeout)
	defer cancel()
	return e.db.InTx(ctx, func(tx *store.Tx) error { return tx.Run(ctx, upsertExported, e.sink.target(), position, tx.Now()) })
}

// fileSink appends batches to a file. It opens the file for each batch. Log rotation may therefore rename the file at any time,
// without a signal: the next batch goes to a new file.
type fileSink struct{ path string }

func (f *fileSink) target() string { return "file " + f.path }

func (f *fileSink) close() {}

// write appends a batch and its head to the file and syncs it. After an error nothing of the batch remains in the file.
func (f *fileSink) write(_ context.Context, b audittrail.ExportBatch) (err error) {
	file, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	end, err := endOfLines(file)
	if err != nil {
		return err
	}
	text := append(bytes.Join(b.Lines, nil), b.Head...)
	if _, err = file.WriteAt(text, end); err == nil {
		err = file.Sync()
	}
	if err != nil {
		return errors.Join(err, file.Truncate(end)) // a partial batch would look like damage
	}
	return nil
}

// endOfLines returns the end of the last complete line. It truncates an incomplete line that a crash left behind; the exporter
// writes its entry again.
func endOfLines(file *os.File) (int64, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return 0, err
	}
	const maxLine = 1 << 20 // longer than any line
	tail := make([]byte, min(size, maxLine))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return 0, err
	}
	last := bytes.LastIndexByte(tail, '\n')
	if last < 0 && int64(len(tail)) < size {
		return 0, fmt.Errorf("%s is no audit export: its last line is too long; nothing was written to it", file.Name())
	}
	end := size - int64(len(tail)) + int64(last) + 1
	if end == size {
		return end, nil
	}
	return end, file.Truncate(end)
}
