// Command with_postgres starts a PostgreSQL server, runs the command in its arguments with the address of the server in
// KONTOR_TEST_POSTGRES, and ends with the status of the command. It uses the server that KONTOR_TEST_POSTGRES names, if it does.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"kontor/store/postgres/postgrestest"
)

const address = "KONTOR_TEST_POSTGRES"

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Println("reason:", err)
	}
	os.Exit(code)
}

func run(command []string) (code int, err error) {
	env := os.Environ()
	if os.Getenv(address) == "" {
		p, err := postgrestest.Start(postgrestest.Options{})
		if err != nil {
			return 1, err
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		env = append(env, address+"="+p.URL("postgres"))
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	go func() {
		for s := range stop {
			_ = cmd.Process.Signal(s) // it has ended
		}
	}()
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}
