"""The loops that decide: one proxy at a time, and the orphans of all."""
