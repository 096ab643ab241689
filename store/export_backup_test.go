package store

// WorkDirectory makes the directory of a backup.
var WorkDirectory = workDirectory
