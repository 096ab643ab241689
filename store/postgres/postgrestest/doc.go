// Package postgrestest starts PostgreSQL for tests.
//
// [URL] gives a test a database of its own on a server that all tests of the process share. [Server] gives it a server of
// its own, which the test may stop, restart and crash. Servers listen on a free port of 127.0.0.1 and on a socket, accept
// every client without a password, and keep their data in a temporary directory. A process of their own stops them and
// removes the directory when the test process ends, however it ends.
//
// The environment variable KONTOR_TEST_POSTGRES names a running server: a URL whose user may create databases. Several
// test processes can share that server; each removes what an earlier one has left behind.
//
// Tests with a server belong to the full tier of package testenv, and run also when KONTOR_TEST_ENGINE is "postgres". They fail where
// PostgreSQL is not installed. Its programs are looked for in PATH and below /usr/lib/postgresql.
package postgrestest
