package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"kontor/store/audittrail"
	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/erasures"
	"kontor/store/inspect"
	"kontor/store/sealing"
	"kontor/store/sqlite"
)

// ErrNotEmpty says that a restore would have to overwrite something.
var ErrNotEmpty = errors.New("a backup is only restored into an empty directory")

// Restore writes the database of a backup into a data directory, which must be missing or empty; files of an interrupted
// restore and the ledger of erasures do not count: the next start applies the ledger. The database is checked before it is renamed. After an error nothing of it stays.
func Restore(ctx context.Context, file string, to inspect.Source) (inspect.Report, error) {
	in, err := os.Open(file)
	if err != nil {
		return inspect.Report{}, fmt.Errorf("%s cannot be read: %w", file, datadir.Cause(err))
	}
	defer in.Close()
	if err := checkEmpty(to.Dir); err != nil {
		return inspect.Report{}, err
	}
	d, err := announce(to.Dir)
	if err != nil {
		return inspect.Report{}, err
	}
	defer d.Close()
	if err := checkEmpty(to.Dir); err != nil { // another restore may have been faster
		return inspect.Report{}, err
	}
	r := &restore{Directory: d}
	report, err := r.run(ctx, in, to.SecretKey)
	if err != nil {
		if !d.Has(datadir.Database) {
			err = errors.Join(err, r.removeAll(), os.Remove(d.File(datadir.Lock))) // created here: the directory was empty
		}
		return inspect.Report{}, fmt.Errorf("restore %s: %w", file, err)
	}
	return report, nil
}

// announce creates the file by which a start recognises an interrupted restore, before anything else, and locks the
// directory.
func announce(path string) (*datadir.Directory, error) {
	if err := datadir.Make(path); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be created: %w", path, datadir.Cause(err))
	}
	announcement := filepath.Join(path, datadir.RestoringDatabase)
	f, err := os.OpenFile(announcement, os.O_WRONLY|os.O_CREATE|os.O_EXCL, datadir.FileMode)
	first := err == nil
	if first {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("data directory %s cannot be written: %w", path, datadir.Cause(err))
	}
	d, err := datadir.Open(path)
	if err != nil && first {
		err = errors.Join(err, os.Remove(announcement))
	}
	return d, err
}

// restore is a restore into a locked directory.
type restore struct{ *datadir.Directory }

// removeAll deletes the files of a restore that failed.
func (r *restore) removeAll() error {
	return r.Remove(append(sqlite.Files(datadir.RestoringDatabase), datadir.RestoringKey, sqlite.RestoredName)...)
}

// checkEmpty returns ErrNotEmpty when a directory holds more than an interrupted restore.
func checkEmpty(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", path, datadir.Cause(err))
	}
	ignored := append(sqlite.Files(datadir.RestoringDatabase), datadir.Lock, "lost+found", datadir.RestoringKey, sqlite.RestoredName, erasures.Name)
	for _, e := range entries {
		if !slices.Contains(ignored, e.Name()) {
			return fmt.Errorf("%s holds %s: %w", path, e.Name(), ErrNotEmpty)
		}
	}
	return nil
}

// run unpacks and checks the files, and then renames them: the database first, because it decides whether the restore
// happened. A process that opens the directory between the two renames the key.
func (r *restore) run(ctx context.Context, in io.Reader, givenKey string) (report inspect.Report, err error) {
	if err := sqlite.RemoveSideFiles(r.Directory, datadir.RestoringDatabase); err != nil { // of an interrupted restore
		return report, err
	}
	if err := r.Remove(datadir.RestoringKey, sqlite.RestoredName); err != nil {
		return report, err
	}
	m, err := r.unpack(in)
	if err != nil {
		return report, err
	}
	keys, err := r.keys(givenKey)
	if err != nil {
		return report, err
	}
	if report, err = inspect.CheckFile(ctx, r.File(datadir.RestoringDatabase), keys, nil); err != nil {
		return report, err
	}
	if report.Schema != m.Schema {
		return report, fmt.Errorf("%w: schema %d in the database, %d in the manifest", engine.ErrCorrupt, report.Schema, m.Schema)
	}
	if keys == nil {
		if err := sqlite.RecordRestore(r.Directory, datadir.RestoringDatabase); err != nil {
			return report, err
		}
	}
	if err := sqlite.RemoveSideFiles(r.Directory, datadir.RestoringDatabase); err != nil { // of the check
		return report, err
	}
	if err := datadir.Sync(r.Path()); err != nil { // the key or the record is durable before the database counts
		return report, err
	}
	if err := r.Rename(datadir.RestoringDatabase, datadir.Database); err != nil {
		return report, err
	}
	if err := sqlite.FinishRestore(r.Directory); err != nil || keys == nil {
		return report, err // without the key, the first start with the key creates the mark
	}
	guard := audittrail.NewGuard(keys, r.File(datadir.Database))
	return report, sqlite.WriteMark(ctx, r.Directory, guard, clock.Of(clock.System{}.Now()))
}

// keys returns the keys of a database that is being restored: of the given key, else of the key in the backup. It returns
// nil when there is none.
func (r *restore) keys(given string) (*sealing.Keys, error) {
	if given == "" {
		text, err := os.ReadFile(r.File(datadir.RestoringKey))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		given = string(text)
	}
	key, err := sealing.ParseMasterKey(given)
	if err != nil {
		return nil, err
	}
	return sealing.New(key)
}

// unpack writes the files of a backup and compares the database with its manifest. It rejects names that it does not know: a
// backup does not decide where files are written.
func (r *restore) unpack(in io.Reader) (m manifest, err error) {
	archive := tar.NewReader(in)
	sum := ""
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return m, fmt.Errorf("%w: not a backup of Kontor, or an incomplete one: %w", engine.ErrCorrupt, err)
		}
		switch {
		case h.Typeflag != tar.TypeReg:
			err = fmt.Errorf("%w: unexpected %s", engine.ErrCorrupt, h.Name)
		case h.Name == manifestName && h.Size <= maxSmallEntry:
			err = json.NewDecoder(archive).Decode(&m)
		case h.Name == datadir.Key && h.Size <= maxSmallEntry:
			var key []byte
			if key, err = io.ReadAll(archive); err == nil {
				err = datadir.Write(r.File(datadir.RestoringKey), key)
			}
		case h.Name == datadir.Database && sum == "":
			sum, err = r.unpackDatabase(archive)
		default:
			err = fmt.Errorf("%w: unexpected %s", engine.ErrCorrupt, h.Name)
		}
		if err != nil {
			return m, err
		}
	}
	switch {
	case m.Format == 0 || sum == "":
		return m, fmt.Errorf("%w: not a backup of Kontor, or an incomplete one", engine.ErrCorrupt)
	case m.Format != format:
		return m, fmt.Errorf("backup has format %d: %w", m.Format, engine.ErrNewerSchema)
	case m.SHA256 != sum:
		return m, fmt.Errorf("%w: the database does not match its manifest", engine.ErrCorrupt)
	}
	return m, nil
}

func (r *restore) unpackDatabase(in io.Reader) (sum string, err error) {
	out, err := os.OpenFile(r.File(datadir.RestoringDatabase), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, datadir.FileMode)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, hash), in)
	if err == nil {
		err = out.Sync()
	}
	return hex.EncodeToString(hash.Sum(nil)), errors.Join(err, out.Close())
}
