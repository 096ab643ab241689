// Package continuous copies a database, while it is served, to a directory or an S3 bucket: at most about a second behind, and
// encrypted before it leaves the machine. A restore can choose any time that was shipped.
//
// Each incarnation of a database (see sqlite.Lineage) has a line of parts, numbered without a gap. A part is a backup of the whole
// database, or what has changed since the part before. A whole one begins a chain:
//
//	x2kq7n4mbd3ovw5a/20270131T080000Z-k3x9q2fa/0000000000-1801382400000-412-0-whole.age
//	x2kq7n4mbd3ovw5a/20270131T080000Z-k3x9q2fa/0000000001-1801382403127-415-3127.age
//	x2kq7n4mbd3ovw5a/line.age
//
// The names say the incarnation, the chain, the number, the time of the state in milliseconds since 1970, the number of its newest
// commit, and for how many milliseconds the incarnation was served. The time may be wrong, because clocks jump; the order of states
// is that of their commits. Each part also contains these facts, and a restore rejects a part whose name says something else.
// line.age says which server writes the line, and which part is the newest.
//
// A part is a backup as package backup writes it, encrypted as https://age-encryption.org/v1 describes, with a passphrase that is
// derived from the master key. It never contains the master key: without that key nothing can be restored.
//
// Every start of the server begins a new chain, and so do a new day and a new master key. Earlier versions wrote chains without
// lines, see [Line.Old].
package continuous

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sealing"
	"kontor/store/sqlite"
)

// A Target keeps objects. Its methods may be called from any goroutine.
type Target interface {
	// Put stores an object. It must not be visible before it is complete and durable.
	Put(ctx context.Context, name string, size int64, in io.ReadSeeker) error
	// List returns all objects whose names this package may have made, in no particular order.
	List(ctx context.Context) ([]Object, error)
	// Get returns the content of an object. A missing one is fs.ErrNotExist, from Get or from the first read.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Delete deletes an object. A missing one is no error.
	Delete(ctx context.Context, name string) error
	// String names the target in messages, without secrets.
	String() string
}

// Object is an object of a target.
type Object struct {
	Name string
	Size int64
}

// part is an object of a chain, as its name describes it.
type part struct {
	line, chain string // line is "" for a chain of an earlier version
	number      int64  // in its line; of an earlier version, in its chain
	at          clock.Time
	commits     int64
	elapsed     time.Duration
	whole       bool
	size        int64
}

const (
	suffix      = ".age"
	wholeSuffix = "-whole"
	lineFile    = "line" + suffix
	chainTime   = "20060102T150405Z"
	chainID     = 8  // letters after the time in the name of a chain
	numberWidth = 10 // digits of the number of a part
)

func (p part) isOld() bool { return p.line == "" }

func (p part) name() string {
	if p.isOld() {
		return fmt.Sprintf("%s/%0*d-%d%s", p.chain, numberWidth, p.number, int64(p.at), suffix)
	}
	end := suffix
	if p.whole {
		end = wholeSuffix + suffix
	}
	return fmt.Sprintf("%s/%s/%0*d-%d-%d-%d%s", p.line, p.chain, numberWidth, p.number, int64(p.at), p.commits, p.elapsed.Milliseconds(), end)
}

var (
	partName = regexp.MustCompile(`^(?:([a-z2-7]{16})/)?(\d{8}T\d{6}Z-[a-z0-9]+)/(\d{10})-(\d+)(?:-(\d+)-(\d+)(-whole)?)?\.age$`)
)

// parsePart returns the part that an object holds. ok is false for an object that no Shipper has named.
func parsePart(o Object) (p part, ok bool) {
	m := partName.FindStringSubmatch(o.Name)
	if m == nil {
		return p, false
	}
	var numbers [4]int64
	for i, text := range m[3:7] {
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return p, false
		}
		numbers[i] = n
	}
	p = part{
		line: m[1], chain: m[2], number: numbers[0], at: clock.Time(numbers[1]), commits: numbers[2],
		elapsed: time.Duration(numbers[3]) * time.Millisecond, whole: m[7] != "", size: o.Size,
	}
	if p.isOld() {
		p.whole = p.number == 0
	}
	return p, p.name() == o.Name
}

// parseLine returns the incarnation whose line.age an object is.
func parseLine(o Object) (incarnation string, ok bool) {
	incarnation, ok = strings.CutSuffix(o.Name, "/"+lineFile)
	return incarnation, ok && sqlite.IsIncarnation(incarnation)
}

// Open opens the target of an address: s3://bucket/prefix, file:///absolute/path, or a path.
func Open(address string) (Target, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("neither an address such as s3://bucket/prefix nor a path") // parse errors quote the address
	}
	switch u.Scheme {
	case "":
		path, err := filepath.Abs(address)
		return directory(path), err
	case "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return nil, fmt.Errorf("%q is not an address such as file:///backup", shown(u))
		}
		return directory(filepath.Clean(u.Path)), nil
	case "s3":
		b, err := openBucket(u)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", shown(u), err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("%q: the target must be s3://bucket/prefix, file:///path, or a path", shown(u))
}

// shown returns an address for messages, without what may be a credential.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// directory is a target in the file system. Another disk, or a network share, survives the loss of the machine.
type directory string

const temporary = ".new" // follows the name of an object that is not complete

// Put writes the object under another name and renames it.
func (d directory) Put(_ context.Context, name string, _ int64, in io.ReadSeeker) error {
	path := filepath.Join(string(d), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), datadir.DirMode); err != nil {
		return err
	}
	if err := write(path+temporary, in); err != nil {
		return errors.Join(err, os.Remove(path+temporary))
	}
	if err := os.Rename(path+temporary, path); err != nil {
		return err
	}
	for _, dir := range []string{filepath.Dir(path), string(d)} {
		if err := datadir.Sync(dir); err != nil {
			return err
		}
	}
	return nil
}

func write(path string, in io.Reader) (err error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, datadir.FileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}

// List lists the files of all chains.
func (d directory) List(ctx context.Context) (objects []Object, err error) {
	err = filepath.WalkDir(string(d), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // deleted in the meantime, or nothing was shipped yet
			}
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !e.Type().IsRegular() {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		name, err := filepath.Rel(string(d), path)
		objects = append(objects, Object{Name: filepath.ToSlash(name), Size: info.Size()})
		return err
	})
	return objects, err
}

// Get opens the file of an object.
func (d directory) Get(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(string(d), filepath.FromSlash(name)))
}

// Delete deletes the file of an object, and the directory of its chain when nothing is left in it.
func (d directory) Delete(_ context.Context, name string) error {
	path := filepath.Join(string(d), filepath.FromSlash(name))
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(filepath.Dir(path)) // fails while other parts are there
	return nil
}

// String names the directory.
func (d directory) String() string { return fmt.Sprintf("directory %s", string(d)) }

// bucket is a target in an S3 bucket.
type bucket struct {
	client *minio.Client
	name   string
	prefix string // with its slash, or empty
}

// openBucket opens a target such as s3://bucket/prefix?endpoint=https://s3.example&region=eu-central-1. Without an endpoint it is
// Amazon's. The credentials are those of the standard variables (AWS_ACCESS_KEY_ID and others), of the file ~/.aws/credentials, or
// of the machine.
func openBucket(u *url.URL) (*bucket, error) {
	query := u.Query()
	endpoint := &url.URL{Scheme: "https", Host: "s3.amazonaws.com"}
	if text := query.Get("endpoint"); text != "" {
		var err error
		if endpoint, err = url.Parse(text); err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
			return nil, errors.New("the endpoint is not an address such as https://s3.example")
		}
	}
	for name := range query {
		if name != "endpoint" && name != "region" {
			return nil, fmt.Errorf("unknown parameter %q: endpoint and region are known", name)
		}
	}
	if u.Host == "" {
		return nil, errors.New("the name of the bucket is missing: s3://bucket/prefix")
	}
	if u.User != nil || endpoint.User != nil || u.Fragment != "" {
		return nil, errors.New("credentials do not belong into the address: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		}),
		Secure: endpoint.Scheme == "https", Region: query.Get("region"),
	})
	if err != nil {
		return nil, err
	}
	b := &bucket{client: client, name: u.Host}
	if prefix := strings.Trim(path.Clean(u.Path), "/."); prefix != "" {
		b.prefix = prefix + "/"
	}
	return b, nil
}

// Put uploads an object.
func (b *bucket) Put(ctx context.Context, name string, size int64, in io.ReadSeeker) error {
	_, err := b.client.PutObject(ctx, b.name, b.prefix+name, in, size, minio.PutObjectOptions{ContentType: "application/octet-stream"})
	return err
}

// List lists the objects below the prefix.
func (b *bucket) List(ctx context.Context) (objects []Object, err error) {
	for o := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, o.Err
		}
		objects = append(objects, Object{Name: strings.TrimPrefix(o.Key, b.prefix), Size: o.Size})
	}
	return objects, nil
}

// Get downloads an object.
func (b *bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	object, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	return download{object}, nil
}

// download is an object that is being downloaded. The request begins with the first read.
type download struct{ *minio.Object }

// Read returns fs.ErrNotExist for a missing object.
func (d download) Read(b []byte) (int, error) {
	n, err := d.Object.Read(b)
	if err != nil && minio.ToErrorResponse(err).StatusCode == http.StatusNotFound {
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return n, err
}

// Delete deletes an object.
func (b *bucket) Delete(ctx context.Context, name string) error {
	err := b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{})
	if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound {
		return nil
	}
	return err
}

// String names the bucket.
func (b *bucket) String() string { return "s3://" + b.name + "/" + strings.TrimSuffix(b.prefix, "/") }

// Key is the passphrase of the objects.
type Key string

// KeyOf returns the key for what sealing.Keys.BackupKey returns.
func KeyOf(derived []byte) Key { return Key(base64.RawURLEncoding.EncodeToString(derived)) }

// The work factors of scrypt, which stretches passphrases, as powers of two. Ours is random, so that stretching it would only
// cost time.
const (
	workFactor    = 1
	maxWorkFactor = 10
)

// seal returns a writer that encrypts. Close completes what was written.
func (k Key) seal(out io.Writer) (io.WriteCloser, error) {
	r, err := age.NewScryptRecipient(string(k))
	if err != nil {
		return nil, err
	}
	r.SetWorkFactor(workFactor)
	return age.Encrypt(out, r)
}

// open returns a reader of what seal encrypted. It returns sealing.ErrWrongKey for another key. Everything that it returns
// before an error is authentic.
func (k Key) open(in io.Reader) (io.Reader, error) {
	i, err := age.NewScryptIdentity(string(k))
	if err != nil {
		return nil, err
	}
	i.SetMaxWorkFactor(maxWorkFactor)
	plain, err := age.Decrypt(in, i)
	if _, wrong := errors.AsType[*age.NoIdentityMatchError](err); wrong {
		return nil, fmt.Errorf("%w: the backup was encrypted with another one", sealing.ErrWrongKey)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	}
	return plain, nil
}
