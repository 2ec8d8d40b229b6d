"""The composition root: settings, the object graph, serving. The only importer of adapters."""
