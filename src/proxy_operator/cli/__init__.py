"""The command line: parsing, printing, exit codes. Everything it knows it asks of `app`."""
