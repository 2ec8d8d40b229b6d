"""Objects, their history and Events in one SQLite file: the home without a cluster.

Wiring: `DataDir.prepare`, `OperatorLock` (the operator only), `Database.migrate` (the operator
only), `Database.open`, then `SqliteObjectClient` and `EventLog` over that database.
"""
