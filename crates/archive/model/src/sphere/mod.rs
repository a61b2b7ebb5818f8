//! Geometry on the sphere, exact in f64.
//!
//! Shapes are what the standards have: [`Point`], [`Circle`], [`Polygon`] of great-circle arcs, [`Range`] of
//! coordinates, and [`Region`], a union of them. All work is done on unit vectors ([`Vec3`]): there is no
//! pole, no longitude 0 and no antipode to treat apart.
//!
//! - Regions are closed: what lies on an edge is inside, to within `cap::TOUCH`, less than a
//!   nano-arcsecond.
//! - A polygon is the smaller of the two sides of its edges, in whichever order its vertices come; see
//!   [`Polygon`].
//! - Longitudes wrap; a latitude beyond a pole is an [`Error`] in a shape and is in no region as a position.
//!   A NaN is in no region.
//! - A shape that was built is ready for tests; [`Prepared`] is for a scan over many positions.
//!
//! What it does not know: coordinate frames (see [`crate::astro`]), positions with errors, ellipses.

mod angle;
mod arc;
mod cap;
mod geometry;
mod measure;
mod point;
mod polygon;
mod prepared;
mod relate;
mod vector;

pub use angle::{chord_squared, distance, offset, position_angle, sin_cos, wrap_longitude};
pub use cap::Cap;
pub use geometry::{Geometry, Region, Shape};
pub use point::{Circle, Point, Range};
pub use polygon::Polygon;
pub use prepared::{Prepared, contains_many, unit_vectors};
pub use relate::{contains, intersects};
pub use vector::Vec3;

/// Why numbers or a text are no shape.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A coordinate or a radius that is NaN or infinite.
    #[error("a coordinate is not a finite number")]
    NotFinite,
    /// A latitude beyond a pole.
    #[error("the latitude {0} is not between -90 and 90 degrees")]
    Latitude(f64),
    /// A radius below zero.
    #[error("the radius {0} is negative")]
    Radius(f64),
    /// A box with a side below zero or above half or a full turn.
    #[error("a box of {0} by {1} degrees: a width is from 0 to 360, a height from 0 to 180")]
    BoxSize(f64, f64),
    /// A range whose latitudes are in the wrong order.
    #[error("the range begins at latitude {0}, above its end at {1}")]
    RangeOrder(f64, f64),
    /// A polygon of fewer than three vertices.
    #[error("a polygon has at least three vertices; this one has {0}")]
    TooFewVertices(usize),
    /// An odd number of coordinates.
    #[error("coordinates come in pairs of longitude and latitude; {0} numbers are not pairs")]
    OddCoordinates(usize),
    /// An edge whose ends are opposite on the sphere.
    #[error("the vertices {0} and {1} are opposite on the sphere: no single great circle joins them")]
    Antipodal(usize, usize),
    /// A shape or a text beyond a limit.
    #[error("more than {0} {1}")]
    TooMany(usize, &'static str),
    /// What the standards have and we have not.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// A text that is no shape.
    #[error("{message} at character {position} of the region")]
    Syntax {
        /// What is wrong.
        message: &'static str,
        /// Where, from 1.
        position: usize,
    },
}

#[cfg(test)]
mod tests;
