//! The body of the fuzz target `region`.

use crate::sphere::{Geometry, Prepared, Region, Vec3, contains, intersects};
use crate::{dali, healpix, time};

/// Edges above which relations and measures, which compare them in pairs, are left out.
const EDGES: usize = 48;

/// What is read is printed and read back; whatever its shape, it has ranges of cells, an area, and relations
/// that agree with each other.
pub(crate) fn region(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = (dali::point(text), dali::circle(text), dali::polygon(text), dali::interval(text));
    let _ = (dali::hms_to_degrees(text), dali::dms_to_degrees(text));
    if let Some(instant) = time::Timestamp::parse(text) {
        assert_eq!(time::Timestamp::parse(&instant.to_string()), Some(instant));
    }
    let Ok(region) = dali::region(text) else { return };
    for write in [dali::write_region, dali::write_stc] {
        let mut out = Vec::new();
        write(&region, &mut out);
        let back = std::str::from_utf8(&out).map(dali::region);
        assert_eq!(back, Ok(Ok(region.clone())), "{}", String::from_utf8_lossy(&out));
    }
    shape(&region);
}

fn shape(region: &Region) {
    let geometry = Geometry::from(region.clone());
    let prepared = Prepared::from_region(region);
    let ranges = healpix::cover(region, 16);
    assert!(ranges.len() <= 16 && ranges.is_sorted_by(|a, b| a.last < b.first));
    for (lon, lat) in [(0.0, 0.0), (0.0, 90.0), (180.0, -89.0), (359.999, 0.001)] {
        let within = prepared.contains_degrees(lon, lat);
        assert_eq!(within, geometry.contains_vector(Vec3::from_degrees(lon, lat)));
        let cell = healpix::hash29(lon, lat).expect("a position has a cell");
        let range = ranges.iter().find(|range| range.first <= cell && cell <= range.last);
        assert!(range.is_some() || !within, "{lon} {lat} is missed");
        assert!(range.is_none_or(|range| !range.inside) || within, "{lon} {lat} is not in the region");
    }
    if size(region) <= EDGES {
        let area = geometry.area();
        assert!((0.0..=41_252.961_25).contains(&area), "{area} square degrees");
        assert!(geometry.centroid().lat().abs() <= 90.0);
        assert!(contains(&geometry, &geometry) && intersects(&geometry, &geometry));
        for shape in region.shapes().iter().take(4) {
            let part = Geometry::from(Region::from(shape.clone()));
            assert!(contains(&part, &geometry) && intersects(&geometry, &part), "{part:?}");
            // An edge of nearly half a turn has a plane that is known to few digits.
            assert!(part.area() <= area * (1.0 + 1e-5) + 1e-9, "{part:?}: {} of {area}", part.area());
        }
    }
}

/// About the edges of a region.
fn size(region: &Region) -> usize {
    let mut out = Vec::new();
    dali::write_region(region, &mut out);
    out.iter().filter(|byte| **byte == b' ').count() / 2
}
