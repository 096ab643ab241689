package postgres

import (
	"kontor/store/clock"
	"kontor/store/engine"
)

// Remembers reports whether this node has received all announcements.
func (e *Engine) Remembers() bool { return e.bus.Remembers() }

// Shared returns true.
func (e *Engine) Shared() bool { return true }

// Leads reports whether this node runs the jobs of the cluster.
func (e *Engine) Leads() bool { return e.bus.Leads() }

// Nodes returns the nodes, as the last heartbeat saw them.
func (e *Engine) Nodes() []engine.Node { return e.bus.Nodes() }

// Clock returns the clock that the database was opened with, or that of the server.
func (e *Engine) Clock() clock.Clock { return e.clock }
