//! Configuration layers, telemetry, shutdown, supervised tasks and the clock seam.
