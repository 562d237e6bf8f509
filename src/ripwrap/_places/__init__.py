"""Places that a search can have besides the files on a disk: each turns a query into several runs of rg."""
