// Command with_postgres starts a PostgreSQL server, runs the command in its arguments with the address of the server in
// KONTOR_TEST_POSTGRES, and ends with the status of the command.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"kontor/store/postgres/postgrestest"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Println("reason:", err)
	}
	os.Exit(code)
}

func run(command []string) (code int, err error) {
	p, err := postgrestest.Start(postgrestest.Options{})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "KONTOR_TEST_POSTGRES="+p.URL("postgres"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}
