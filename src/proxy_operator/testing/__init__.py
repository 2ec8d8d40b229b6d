"""The test kit: fakes, fault wrappers and contract suites, for us and for authors of providers.

Nothing that ships at run time imports it. It needs pytest.
"""
