package postgres

// detach lets another statement use the connection: the rows that are on their way are kept in memory.
func (c *conn) detach() error {
	a := c.active
	if a == nil {
		return nil
	}
	c.active = nil
	if a.row != nil {
		a.row = cloneRow(a.row)
	}
	return c.catchUp()
}

// catchUp reads the answers to what was sent, so that the status of the transaction is known.
func (c *conn) catchUp() error {
	if c.active != nil {
		return c.detach()
	}
	_, err := c.receive(nil)
	return err
}

// keep stores a row that has arrived while another statement uses the connection.
func (s *statement) keep(row [][]byte) { s.kept = append(s.kept, cloneRow(row)) }

func cloneRow(row [][]byte) [][]byte {
	size := 0
	for _, v := range row {
		size += len(v)
	}
	buffer, clone := make([]byte, 0, size), make([][]byte, len(row))
	for i, v := range row {
		if v != nil {
			start := len(buffer)
			buffer = append(buffer, v...)
			clone[i] = buffer[start:len(buffer):len(buffer)]
		}
	}
	return clone
}
