//! The HTTP binding of NGSI-LD (clause 6).
