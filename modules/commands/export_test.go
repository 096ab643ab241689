package commands

// Harmless is for tests.
var Harmless = harmless

// EngineCache returns the directory of the compiled PDF engine.
func EngineCache() string { return engineCache() }
