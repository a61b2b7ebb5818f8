//! The rig: load, sampling, floors, verdicts and reports, from outside the doors only.
