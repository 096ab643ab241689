package auth

// FillQueue fills the queue of the hasher, as a flood of sign-ins does.
func (s *Service) FillQueue() (release func()) {
	var taken []func()
	for {
		leave, err := s.hasher.acquire()
		if err != nil {
			break
		}
		taken = append(taken, leave)
	}
	return func() {
		for _, leave := range taken {
			leave()
		}
	}
}
