// Package retention removes personal data: it blanks the contents of runs that ended long ago, and erases a person who asks for it.
package retention
