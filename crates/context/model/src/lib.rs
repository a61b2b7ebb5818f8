//! The NGSI-LD data model: JSON-LD contexts, entity records, renderers, query languages. Pure.
