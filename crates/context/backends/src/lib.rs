//! Drivers behind the ports of the context engine.
