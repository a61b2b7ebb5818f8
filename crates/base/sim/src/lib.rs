//! Seeded faults for disk, network and clock; development only.
