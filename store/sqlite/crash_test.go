package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// crashDir is set for the process that is killed.
const crashDir = "KONTOR_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		writeUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// writeUntilKilled inserts pairs of rows from many goroutines and prints the name of each acknowledged pair.
func writeUntilKilled(dir string) {
	ctx := context.Background()
	db, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var wg sync.WaitGroup
	var out sync.Mutex
	for range 16 {
		wg.Go(func() {
			for {
				name := store.NewID()
				err := db.InTx(ctx, func(tx *store.Tx) error {
					tx.Audit(store.AuditEntry{Action: "roles.create", RecID: name})
					if err := storetest.InsertRole(ctx, tx, name+" a"); err != nil {
						return err
					}
					return storetest.InsertRole(ctx, tx, name+" b")
				})
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				out.Lock()
				fmt.Println(name)
				out.Unlock()
			}
		})
	}
	wg.Wait()
}

func TestKill_LosesNoAcknowledgedWrite(t *testing.T) {
	dir := storetest.Dir(t)
	var acknowledged []string
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashDir+"="+dir)
		cmd.Stderr = t.Output()
		testenv.Child(cmd)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			acknowledged = append(acknowledged, lines.Text())
			if n == 150 {
				cmd.Process.Kill() // SIGKILL; what is in the pipe is still read
			}
		}
		cmd.Wait()
	}
	if len(acknowledged) < 450 {
		t.Fatalf("only %d writes were acknowledged", len(acknowledged))
	}

	db := openDir(t, dir)
	ctx := t.Context()
	for _, name := range acknowledged {
		var n int
		err := db.QueryRow(ctx, `SELECT COUNT(*) FROM roles WHERE name IN ($1, $2)`, name+" a", name+" b").Scan(&n)
		if err != nil || n != 2 {
			t.Fatalf("acknowledged pair %s has %d rows, err %v", name, n, err)
		}
	}
	rows, err := db.Query(ctx, `SELECT name FROM roles`)
	if err != nil {
		t.Fatal(err)
	}
	pairs := map[string]int{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		pair, _, _ := strings.Cut(name, " ")
		pairs[pair]++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for name, n := range pairs {
		if n != 2 {
			t.Errorf("pair %s is there by half", name)
		}
	}
	if entries, err := db.VerifyAudit(ctx); err != nil || int(entries) != len(pairs) {
		t.Errorf("%d audit entries for %d pairs, err %v", entries, len(pairs), err)
	}
}
