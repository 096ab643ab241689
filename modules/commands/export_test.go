package commands

// Harmless is for tests.
var Harmless = harmless
