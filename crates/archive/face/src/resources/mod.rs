//! The resources, one file each.

pub(crate) mod availability;
pub(crate) mod capabilities;
pub(crate) mod cone;
pub(crate) mod examples;
pub(crate) mod page;
pub(crate) mod sync;
pub(crate) mod tables;
