"""What ripwrap needs of the operating system: processes, threads, files that are opened and written safely."""
