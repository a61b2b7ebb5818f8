//! The mathematics of the user-defined functions: proper motions, frames, spectral units.
//!
//! Numbers in, numbers out; what NULL means is the evaluator's affair, except where the IVOA catalogue of
//! user-defined functions gives it a meaning of its own, which is said there.

mod epoch;
mod frame;
mod spectral;

pub use epoch::{Astrometry, propagate};
pub use frame::{Frame, Transform};
pub use spectral::{Spectral, convert};
