package continuous_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"kontor/store/backup/continuous"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

const (
	accessKey = "test-access"
	secretKey = "test-secret-of-twenty-letters"
	bucket    = "vault"
)

// s3Server is an S3 server (versitygw) that keeps its objects in a directory.
type s3Server struct {
	program, dir, address string
	running               *testenv.Program
}

// startS3 builds and starts a server with one bucket.
func startS3(t *testing.T) *s3Server {
	t.Helper()
	testenv.Need(t, testenv.Full)
	dir := t.TempDir()
	s := &s3Server{program: filepath.Join(dir, "versitygw"), dir: dir, address: testenv.FreeAddress(t)}
	build := exec.Command("go", "build", "-C", "../../../.ci/s3", "-o", s.program, "github.com/versity/versitygw/cmd/versitygw")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("run \"go mod download\" in .ci/s3 to test with an S3 server: %v\n%s", err, out)
	}
	for _, name := range []string{"objects", "metadata"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.start(t)
	client, err := minio.New(s.address, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, "")})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *s3Server) start(t *testing.T) {
	t.Helper()
	s.running = testenv.Background(t, exec.Command(s.program, "--port", s.address, "--access", accessKey, "--secret", secretKey, "--quiet",
		"posix", "--sidecar", filepath.Join(s.dir, "metadata"), filepath.Join(s.dir, "objects")))
	s.running.IgnoreOutput()
	testenv.WaitForListener(t, s.address)
}

func (s *s3Server) target(t *testing.T) continuous.Target {
	t.Helper()
	target, err := continuous.Open(fmt.Sprintf("s3://%s/banks/one?endpoint=http://%s&region=us-east-1", bucket, s.address))
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// checkLines ships a bank, its copy and another writer to a target, and restores the bank. A deleted part is a gap.
func checkLines(t *testing.T, target continuous.Target) {
	t.Helper()
	s := shippingOf(t, filepath.Join(t.TempDir(), "bank of the lines"), target)
	s.write(t, 5)
	c := copyOf(t, s)
	storetest.Audit(t, c.db, 50)
	if err := c.Ship(t.Context()); !errors.Is(err, continuous.ErrUnconfirmed) {
		t.Errorf("the copy: %v", err)
	}
	line := s.Status().Line
	touchStatus(t, s, line)
	_, want := s.write(t, 5)
	if s.Status().Displaced == nil || s.Status().Line == line {
		t.Errorf("beside another writer: %+v", s.Status())
	}
	if got, err := s.restore(t, 0); err != nil || got != want {
		t.Errorf("%d entries, %v; want %d", got, err, want)
	}
	s.write(t, 5)
	var own []string
	for _, name := range s.names(t) {
		if strings.HasPrefix(name, s.Status().Line) {
			own = append(own, name)
		}
	}
	if err := target.Delete(t.Context(), own[len(own)-1]); err != nil {
		t.Fatal(err)
	}
	if _, err := s.restore(t, 0); !errors.Is(err, continuous.ErrGap) {
		t.Errorf("without the newest part: %v", err)
	}
	if r, err := s.restoreWanted(t, continuous.Wanted{AllowGap: true}); err != nil || r.AuditEntries != want {
		t.Errorf("with a gap allowed: %d entries, %v; want %d", r.AuditEntries, err, want)
	}
	if list := s.list(t); !strings.Contains(list, "foreign") || !strings.Contains(list, "gap") {
		t.Errorf("the list is %q", list)
	}
}

// TestS3 ships to a server and restores from there. While the server is away nothing is lost.
func TestS3(t *testing.T) {
	server := startS3(t)
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	s := newShipping(t, server.target(t))
	first, wantFirst := s.write(t, 100)
	s.write(t, 100)

	server.running.Stop()
	storetest.Audit(t, s.db, 10)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	if err := s.Ship(ctx); err == nil {
		t.Error("shipped to a server that is away")
	}
	cancel()
	server.start(t)
	_, want := s.write(t, 1)
	if got, err := s.restore(t, 0); err != nil || got != want {
		t.Errorf("%d entries, %v; want %d", got, err, want)
	}
	if got, err := s.restore(t, first); err != nil || got != wantFirst {
		t.Errorf("the first state: %d entries, %v; want %d", got, err, wantFirst)
	}

	large := bytes.Repeat([]byte("0123456789abcdef"), 2<<20) // more than one part of an upload
	put(t, s.target, "large", large)
	if got := contentOf(t, s.target, "large"); !bytes.Equal(got, large) {
		t.Errorf("%d bytes came back of %d", len(got), len(large))
	}
	for range 2 { // the second time it is missing
		if err := s.target.Delete(t.Context(), "large"); err != nil {
			t.Error(err)
		}
	}
	if in, err := s.target.Get(t.Context(), "large"); err == nil {
		if _, err := io.ReadAll(in); err == nil {
			t.Error("a deleted object was read")
		}
	}

	checkLines(t, server.target(t))

	t.Setenv("AWS_SECRET_ACCESS_KEY", "another-secret-of-twenty")
	if _, err := continuous.Look(t.Context(), server.target(t), ""); err == nil {
		t.Error("listed with a wrong secret")
	}
}

// Neither form of an address with credentials is opened, and no message repeats what may be one.
func TestOpen_RefusesCredentials(t *testing.T) {
	for _, address := range []string{
		"s3://AKIAEXAMPLE:hunter22@bucket/prefix",
		"s3://bucket/prefix#hunter22",
		"s3://bucket/prefix?endpoint=https://kontor:hunter22@s3.example",
		"s3://bucket/prefix?endpoint=hunter22",
		"s3://bucket/prefix?secret=hunter22",
	} {
		if _, err := continuous.Open(address); err == nil || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
