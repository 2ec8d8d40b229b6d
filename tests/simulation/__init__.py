"""The cost-truth simulation: whole operators and a whole cloud on virtual time, by a seed.

`plan` makes a schedule of happenings from a seed, `deeds` does them, `invariants` judges.
Everything random comes from the seed, so a seed that fails, fails again.
"""
