"""The test kit: fakes, and the contract suites that hold fakes and real adapters to one promise.

It ships so that providers kept elsewhere can run the same suites. Nothing imports it at run time.
"""
