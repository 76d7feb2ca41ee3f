// Package datakey replaces the data key of an installation, which seals its secrets, while servers run.
//
// What must not happen, and why it does not:
//
//   - A server meets data that it cannot open. The new key seals only after every server has read it. A server that was
//     not there, because its machine slept, reads the keys again when it cannot open something.
//   - A server seals with the former key after everything was sealed again. Before the last passes the replacement waits
//     until every server seals with the new key, and then for Settle, so that what was sealed before is stored. A server
//     that has not read the keys for a while reads them before it seals.
//   - A secret that somebody changes is overwritten. A value is replaced only if it is still the one that was read.
//   - A server of a former version of the program goes on with the former key for ever. As long as one runs, nothing
//     begins, and nothing ends.
//   - A killed replacement leaves half of it. Each step is one change of the stored keys, and the next call continues.
//   - The second key is replaced meanwhile. Then the stored keys can neither be read nor changed by this process, so it
//     ends, and nothing is lost. A server that cannot read them either counts as one that has not read them.
package datakey
