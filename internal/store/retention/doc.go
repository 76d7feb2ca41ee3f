// Package retention removes personal data. It removes the contents of runs that ended long ago, and erases persons.
package retention
