package app

import "kontor/store"

// Sandbox makes the modules a sandbox for developers, see docs/sandbox.md.
type Sandbox struct {
	Clock  *store.ShiftedClock // of the database
	Public bool                // other machines may call the endpoints of the sandbox
}

// InSandbox reports whether the modules are a sandbox.
func (m *Modules) InSandbox() bool { return m.Sandbox != nil }
