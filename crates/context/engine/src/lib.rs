//! The NGSI-LD broker: operations of clause 5 over an entity store port.
