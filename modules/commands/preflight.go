package commands

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kontor/modules/app"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/backup/continuous"
	"kontor/store/datadir"
)

// checkPaths checks the settings that refer to files, and the master key. A start with a wrong one must neither create
// data nor print secrets.
func checkPaths(s *settings.Settings) error {
	if mistakes := pathMistakes(s); len(mistakes) > 0 {
		return mistakes[0]
	}
	return nil
}

// pathMistakes returns each mistake of these settings that prevents the start on this machine. It changes nothing.
func pathMistakes(s *settings.Settings) (mistakes []error) {
	add := func(err error) {
		if err != nil {
			mistakes = append(mistakes, err)
		}
	}
	add(checkConsoleDir(s.Server.ConsoleDir))
	dataDir := s.Data.Dir
	if s.Data.URL == "" {
		add(checkDataDir(dataDir))
	} else {
		add(checkDatabase(s))
		dataDir = "" // it is not created
	}
	add(store.CheckSecretKeys(string(s.Secrets.SecretKey), string(s.Secrets.PreviousKey)))
	add(checkBackupTarget(s))
	add(checkTLS(&s.Server))
	add(checkListsDir(s.Screening.Dir))
	add(checkExportFile(s.Audit.ExportFile, dataDir))
	return mistakes
}

func checkConsoleDir(dir string) error {
	if dir == "" { // the console in the executable is complete, and building it takes 40 ms
		return nil
	}
	if err := app.CheckConsole(dir); err != nil {
		return fmt.Errorf("server.console_dir %s holds no console; name the directory web of the source, or leave the setting out (%w)", dir, err)
	}
	return nil
}

func checkListsDir(dir string) error {
	if dir == "" {
		return nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("screening.dir %s is not a directory; create it, or leave the setting out", dir)
	}
	return nil
}

// checkBackupTarget rejects an address that cannot be a target. Whether the target answers is seen later: the server must start
// without it.
func checkBackupTarget(s *settings.Settings) error {
	if s.Backup.URL == "" {
		return nil
	}
	if s.Data.URL != "" {
		return errors.New("backup.url is for the database in data.dir; with data.url, use the backups of PostgreSQL (docs/cluster.md)")
	}
	if _, err := continuous.Open(s.Backup.URL); err != nil {
		return fmt.Errorf("backup.url: %w", err)
	}
	return nil
}

// checkDataDir rejects a path that exists and is no directory, or that cannot be reached.
func checkDataDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("data.dir %s is not a directory; name a directory", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist): // the start creates a missing one
		return fmt.Errorf("data.dir %s cannot be reached: %w", dir, datadir.Cause(err))
	}
	return nil
}

// checkExportFile rejects a file that could not be created. Its directory may be the data directory, which the first start
// creates; dataDir is "" without one.
func checkExportFile(file, dataDir string) error {
	if file == "" {
		return nil
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("audit.export_file %s is a directory; name a file", file)
	}
	parent := filepath.Dir(file)
	if info, err := os.Stat(parent); err == nil && info.IsDir() || dataDir != "" && samePath(parent, dataDir) {
		return nil
	}
	return fmt.Errorf("audit.export_file %s cannot be written: %s is not a directory; create it", file, parent)
}

func samePath(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}
