// Package file stores the files that clients upload, in parts of 1 MiB. All nodes read them in the database.
//
// A file is removed when nothing needs it any more: no sequence, template, rule or campaign names it, no value of a
// booking, contact or recipient does, and the contents of the last message with it are old enough to be removed, too.
// needed_at says when this message is over; whoever plans messages raises it in the same transaction, rounded up to days so
// that most starts write nothing. run_id remembers whether one person alone had the file: it is the person's latest run
// with it. If this run is erased with its person, nothing needs the file.
//
// A file is removed in two steps, because others may decide to use it while it is being removed. First it is hidden: nobody
// finds it, but its bytes stay, so that whoever reads it can finish. Whoever stores a use of a hidden file gives it back.
// Ten minutes later, it is given back if something names it; otherwise its parts are deleted, a few in each transaction.
package file
