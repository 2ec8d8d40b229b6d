"""The object graph: who answers which port. Building it does no I/O."""
