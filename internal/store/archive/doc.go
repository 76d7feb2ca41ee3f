// Package archive reads and writes the file format of exported installations, and of the archive's files of old rows (a
// [Folder]). A backup is a zip file that contains exports. A file is one gzip stream of lines, readable with zcat. Its
// content is the same for both databases.
//
// The first line is the [Header]. It names the program that made the file. It lists each table with its columns and its
// number of rows. The tables follow in the order of this list. Each table begins with a line {"table": "client"}. Its
// rows follow; each row is a JSON array of the columns' values. The table ends with a line {"end": "client", "rows":
// 12, "digest": "…"}. The last line of the file is {"end": "export", "rows": 3456, "sha256": "…"}.
//
// Values are integers, reals, texts, bytes (in base64), booleans and null. There is only one way to write a row
// (AppendRow). A table's digest is the sum, modulo 2^256, of the SHA-256 of each row's line without the line break. The
// digest does not depend on the order of the rows. So equal digests prove that two databases have the same rows. The
// sha256 in the last line covers all lines before it.
package archive
