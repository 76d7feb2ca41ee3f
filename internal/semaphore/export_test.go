package semaphore

// Holders returns how many holders of the highest level the semaphore remembers.
func (s *Semaphore) Holders() int { return len(s.root.below) }
