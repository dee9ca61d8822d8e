package server

import "wf/protocol"

func (s *Server) tables(c *call) (any, error) {
	part, err := c.part()
	if err != nil {
		return nil, err
	}
	return s.Service.Tables(c.Context(), part)
}

func (s *Server) table(c *call) (any, error) {
	return s.Service.Table(c.Context(), protocol.RunID(c.PathValue("table")))
}
