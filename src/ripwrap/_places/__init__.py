"""Places that a search can have besides the files on a disk: each turns a command into several runs of rg."""
