//! Consumer groups: committed offsets, native work groups, the classic coordinator.
