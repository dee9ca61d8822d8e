package pgstore

// TakeFree is the statement of a look for runs that are due.
var TakeFree = takeFree
