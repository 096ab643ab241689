package postgres

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kontor/store/engine"
)

// memoryPause is the time between two writes of the file while commits are counted. A node that is killed may forget the last ones.
const memoryPause = time.Second

// memory keeps a sighting, so that a node remembers it after a restart. A nil memory keeps nothing.
type memory struct {
	kept engine.Memory
	log  *slog.Logger

	mu      sync.Mutex
	waiting *sighting // for the timer
	timer   *time.Timer

	disk    sync.Mutex // held while the file is written
	last    sighting
	failing bool
	closed  bool
}

// openMemory returns a memory, and what it holds.
func openMemory(kept engine.Memory, log *slog.Logger) (*memory, sighting, error) {
	if kept == nil {
		return nil, sighting{}, nil
	}
	m := &memory{kept: kept, log: log}
	data, err := kept.Read()
	if err == nil && data != nil {
		err = json.Unmarshal(data, &m.last)
	}
	if err != nil {
		return nil, sighting{}, fmt.Errorf("%s cannot be read, which says what this node has seen of the database: %w; delete it if the database server is the right one", kept.Name(), err)
	}
	return m, m.last, nil
}

// keepNow keeps a sighting at once.
func (m *memory) keepNow(s sighting) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.waiting = nil
	m.mu.Unlock()
	m.write(s)
}

// keep keeps a sighting soon.
func (m *memory) keep(s sighting) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.waiting == nil
	m.waiting = &s
	if first {
		m.timer = time.AfterFunc(memoryPause, m.flush)
	}
}

// flush writes what waits.
func (m *memory) flush() {
	m.mu.Lock()
	s := m.waiting
	m.waiting = nil
	m.mu.Unlock()
	if s != nil {
		m.write(*s)
	}
}

// close writes what waits. Nothing is written later.
func (m *memory) close() {
	if m == nil {
		return
	}
	m.flush()
	m.mu.Lock()
	if m.timer != nil {
		m.timer.Stop()
	}
	m.mu.Unlock()
	m.disk.Lock()
	defer m.disk.Unlock()
	m.closed = true
}

// write keeps a sighting. A failure is logged once: the node remembers without the file as long as it runs.
func (m *memory) write(s sighting) {
	m.disk.Lock()
	defer m.disk.Unlock()
	if s == m.last || m.closed {
		return
	}
	data, err := json.Marshal(s)
	if err == nil {
		err = m.kept.Write(append(data, '\n'))
	}
	if err != nil {
		if !m.failing {
			m.log.Error("what this node has seen of the database cannot be kept for its next start", "file", m.kept.Name(), "err", err)
		}
		m.failing = true
		return
	}
	m.last, m.failing = s, false
}
