// Package file stores the files that clients upload, in parts of 1 MiB. All nodes read them in the database.
//
// A file is removed when nothing needs it any more: no sequence, template, rule or campaign names it, and the contents of
// the last message with it are old enough to be removed, too. needed_at says when this message is over; whoever plans
// messages raises it in the same transaction, rounded up to days so that most starts write nothing. run_id remembers
// whether one run alone had the file. If this run is erased with its person, nothing needs the file.
package file
