// Package media fetches the files at callers' media addresses: safely, because a caller can write any address, and once for each run.
//
// Safely means that every connection is checked when it is made, on the very address that is dialled. So no spelling,
// no redirect and no name that resolves anew can lead into our network. No cookie or credential of ours is sent. Time,
// rate, size, disk and the number of fetches at once are all bounded. The content of a file is never decoded: no
// archive is unpacked, and no image is read.
package media
