package binding

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Prepare returns the compiled form of one statement, which is kept and found again by its text. While it is running, Prepare
// compiles another that is not kept.
func (c *Conn) Prepare(text string) (*Stmt, error) {
	c.clock++
	if s, ok := c.stmts[text]; ok && !s.busy {
		s.used = c.clock
		return s, nil
	} else if ok {
		return c.compile(text)
	}
	s, err := c.compile(text)
	if err != nil {
		return nil, err
	}
	if len(c.stmts) >= maxStatements {
		c.evict()
	}
	s.kept, s.used = true, c.clock
	c.stmts[text] = s
	return s, nil
}

// Texts returns the texts of the kept statements, in no order.
func (c *Conn) Texts() []string { return slices.Collect(maps.Keys(c.stmts)) }

// evict drops the less recently used half of the statements that are not running.
func (c *Conn) evict() {
	limit := c.clock
	if n := uint64(maxStatements / 2); limit > n {
		limit -= n
	}
	for text, s := range c.stmts {
		if s.used <= limit && !s.busy {
			s.finalize()
			delete(c.stmts, text)
		}
	}
	for text, s := range c.stmts {
		if len(c.stmts) < maxStatements {
			return
		}
		if !s.busy {
			s.finalize()
			delete(c.stmts, text)
		}
	}
}

// compile compiles exactly one statement.
func (c *Conn) compile(text string) (*Stmt, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, fmt.Errorf("statement contains a NUL byte")
	}
	sql, err := libc.CString(text)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, sql)
	out := libc.Xmalloc(c.tls, 16)
	defer libc.Xfree(c.tls, out)

	rc := c.prepare(sql, int32(len(text))+1, out, out+8)
	if rc != lib.SQLITE_OK {
		return nil, c.fail(rc)
	}
	p := *(*uintptr)(at(out))
	tail := int(*(*uintptr)(at(out + 8)) - sql)
	if p == 0 || strings.TrimRight(text[tail:], " \t\r\n;") != "" {
		lib.Xsqlite3_finalize(c.tls, p)
		return nil, fmt.Errorf("exactly one statement expected: %.80q", text)
	}
	return newStmt(c, p)
}

// Run compiles a statement, runs it once and ignores its rows.
func (c *Conn) Run(text string) error {
	s, err := c.compile(text)
	if err != nil {
		return err
	}
	defer s.finalize()
	for {
		if more, err := s.Step(); err != nil || !more {
			return err
		}
	}
}
