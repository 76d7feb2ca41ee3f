// Package file finds out the type of an uploaded file from its content, and refuses what no network takes. From images it
// removes everything that a picture does not need, such as the place where it was taken. No image is decoded, and no
// archive is unpacked.
package file
