package sealed

// Names returns the names of the columns of the store, and of the linked numbers, such as "session.keys".
func Names() (own, theirs []string) {
	for _, c := range columns {
		own = append(own, c.table+"."+c.value)
	}
	for _, c := range linkedNumbers {
		theirs = append(theirs, c.table+"."+c.value)
	}
	return own, theirs
}
