package store

import "errors"

const selectLastAudited = `SELECT at FROM audit_entries ORDER BY seq DESC LIMIT 1`

// loadLatest begins Latest with what an earlier process has left.
func (w *writer) loadLatest() error {
	var at Time
	err := readKept(w.conn, selectLastAudited, nil, &at)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	w.noteTime(at)
	return err
}

// noteTime moves Latest on. Only the writer calls it.
func (w *writer) noteTime(now Time) {
	if int64(now) > w.latest.Load() {
		w.latest.Store(int64(now))
	}
}
