package backup

// WorkDirectory creates the directory of a backup.
var WorkDirectory = workDirectory
