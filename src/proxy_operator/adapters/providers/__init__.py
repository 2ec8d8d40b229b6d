"""Providers: each makes instances in one place, behind `provisioning.contract.Provider`.

They do not know each other; what several need belongs to `provisioning`.
"""
