"""Leases and cooldowns: one process, one loop, no await inside a decision."""
