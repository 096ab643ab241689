// Package faults_test makes the system calls of servers fail and hang, and removes their files.
package faults_test

import (
	"testing"

	"kontor/modules/commands/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m) }
