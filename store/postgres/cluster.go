package postgres

import (
	"kontor/store/clock"
	"kontor/store/engine"
)

// Remembers reports whether this node has received all announcements.
func (e *Engine) Remembers() bool { return true }

// Shared returns true.
func (e *Engine) Shared() bool { return true }

// Leads reports whether this node runs the jobs of the cluster.
func (e *Engine) Leads() bool { return true }

// Nodes returns the nodes.
func (e *Engine) Nodes() []engine.Node { n := e.self; n.Leads = true; return []engine.Node{n} }

// Clock returns the clock of decisions.
func (e *Engine) Clock() clock.Clock { return e.clock }
