package migration

// UpTo stops after a step, as the program that ended there did.
var UpTo = up
