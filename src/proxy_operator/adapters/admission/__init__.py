"""Admission: one CRD document, generated from the domain's types and evaluated by both homes."""
