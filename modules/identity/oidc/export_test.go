package oidc

import "time"

// GiveUpAfter sets the time for requests to the provider. Call it before the first request.
func (s *Service) GiveUpAfter(d time.Duration) {
	s.options.Timeout, s.provider.options.Timeout, s.provider.client = d, d, newClient(d)
}
