// Package backup makes backups by schedule: when one is due, how it is encrypted, where it is stored, which older ones are
// removed, and whether the newest one can be restored.
//
// Any number of nodes may run a [Runner]. The store lets only one of them do a job at a time. A job whose node died is
// done by another node after its deadline.
//
// # What counts as good
//
// The backup is written to a scratch folder, and read back there completely. Then it is encrypted and stored. It is good
// when the storage has confirmed all bytes under the final name. The rehearsal then reads the stored file, restores it
// into an empty database, and compares.
//
// # Encryption
//
// The server has only the operator's recipient, so it cannot open stored backups. For the rehearsal, each backup is also
// encrypted to an identity that is made for this backup. The database has this identity, sealed, until the rehearsal has
// ended or the next backup is made. So the server can open only its newest backup, and whoever has the storage can open
// none.
package backup
