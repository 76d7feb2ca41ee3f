package migration

// UpTo stops after a step, as an older program does whose last step it was.
var UpTo = up
