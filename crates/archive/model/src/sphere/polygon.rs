//! Polygons of great-circle arcs.
//!
//! # Which side is inside
//!
//! The edges of a polygon part the sphere into two sides, and the standards leave open which is meant: DALI
//! 1.2 3.10 and STC-S ask for vertices counter-clockwise as seen from the origin, while DALI's own example
//! there, the example of ADQL 2.1 4.2.17 and many footprints in archives run the other way and mean the small
//! side. Therefore **the smaller side is inside, in whichever order the vertices come**. Where both sides are
//! equal (all vertices on one great circle, going round) the winding decides as DALI says. A side larger than
//! a hemisphere is written as `NOT` in STC-S, and is [`Polygon::complement`].
//!
//! A polygon whose edges cross is inside where an arc from outside crosses an odd number of edges; what is
//! outside is the side of the opposite hemisphere, or for one that fits in no hemisphere the smaller by
//! winding area. Repeated vertices and spurs that return on themselves count for nothing; a polygon without
//! area is the arcs of its edges. Opposite neighbours have no arc between them: an [`Error`].
//!
//! # How
//!
//! A position is inside if the arc to it from a reference position crosses an odd number of edges more or
//! less. The reference is far from the great circle of every edge and not near the polygon, so every crossing
//! is well-conditioned; which side a vertex is on is decided once for both its edges, so a vertex is never
//! counted twice. About ten multiplications an edge.

use std::f64::consts::{PI, TAU};

use super::angle;
use super::cap::{Cap, TOUCH};
use super::point::Point;
use super::{Error, Vec3};
use crate::limits::VERTICES_MAX;

/// A polygon wider than this (radius of its cap in radians) has its references looked for on the whole
/// sphere.
const NARROW: f64 = PI / 3.0;

/// Positions among which a wide polygon finds its references.
const CANDIDATES: usize = 128;

/// A polygon, ready for tests.
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    /// Longitudes and latitudes as they were given.
    coordinates: Box<[f64]>,
    edges: Box<[Edge]>,
    references: [Reference; 2],
    /// What holds the smaller side.
    cap: Cap,
    complement: bool,
}

/// From its start to the start of the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Edge {
    pub(crate) start: Vec3,
    /// The unit normal of its great circle.
    pub(crate) normal: Vec3,
}

/// A position known to be inside or outside of the smaller side.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reference {
    at: Vec3,
    inside: bool,
}

impl Polygon {
    /// The polygon of these longitudes and latitudes in degrees, in turn.
    pub fn new(coordinates: &[f64]) -> Result<Self, Error> {
        if !coordinates.len().is_multiple_of(2) {
            return Err(Error::OddCoordinates(coordinates.len()));
        }
        if coordinates.len() / 2 > VERTICES_MAX {
            return Err(Error::TooMany(VERTICES_MAX, "vertices"));
        }
        let mut vertices = Vec::with_capacity(coordinates.len() / 2);
        for pair in coordinates.chunks_exact(2) {
            vertices.push(Point::new(pair[0], pair[1])?.vector());
        }
        if vertices.len() < 3 {
            return Err(Error::TooFewVertices(vertices.len()));
        }
        refuse_antipodes(&vertices)?;
        let edges = edges(&clean(vertices));
        let cap = Cap::around(&edges.iter().map(|edge| edge.start));
        let narrow = cap.filter(|cap| cap.radius() <= NARROW);
        let references = match &narrow {
            Some(cap) => narrow_references(&edges, cap),
            None => wide_references(&edges, cap.as_ref()),
        };
        let cap = cap.unwrap_or_else(Cap::whole);
        Ok(Self { coordinates: coordinates.into(), edges, references, cap, complement: false })
    }

    /// A box on the sky (ADQL 2.1 4.2.9): a cross of two arms along the coordinate lines of the centre, and
    /// great circles through their ends at right angles.
    pub fn from_box(lon: f64, lat: f64, width: f64, height: f64) -> Result<Self, Error> {
        let center = Point::new(lon, lat)?;
        if !(width >= 0.0 && height >= 0.0 && width < 180.0 && height < 180.0) {
            return Err(Error::BoxSize(width, height));
        }
        let axis = center.vector();
        let ((sin_lon, cos_lon), (sin_lat, cos_lat)) = (angle::sin_cos(lon), angle::sin_cos(lat));
        let east = Vec3 { x: -sin_lon, y: cos_lon, z: 0.0 };
        let north = Vec3 { x: -sin_lat * cos_lon, y: -sin_lat * sin_lon, z: cos_lat };
        // On the plane that touches the sphere at the centre the sides are straight lines.
        let (sin_x, cos_x) = angle::sin_cos(width / 2.0);
        let (sin_y, cos_y) = angle::sin_cos(height / 2.0);
        let mut coordinates = Vec::with_capacity(8);
        for (x, y) in [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)] {
            let corner = axis * (cos_x * cos_y) + east * (x * sin_x * cos_y) + north * (y * sin_y * cos_x);
            let (lon, lat) = corner.to_degrees();
            coordinates.extend([lon, lat]);
        }
        Self::new(&coordinates)
    }

    /// The other side, with its edges.
    #[must_use]
    pub fn complement(mut self) -> Self {
        self.complement = !self.complement;
        self
    }

    /// Whether it is the larger side.
    pub fn is_complement(&self) -> bool {
        self.complement
    }

    /// Longitudes and latitudes as they were given, in turn.
    pub fn coordinates(&self) -> &[f64] {
        &self.coordinates
    }

    /// A cap that holds it.
    pub fn cap(&self) -> Cap {
        if self.complement { Cap::whole() } else { self.cap }
    }

    /// The cap of the smaller side.
    pub(crate) fn small_cap(&self) -> &Cap {
        &self.cap
    }

    /// A place to measure triangles from: the opposite place is on no edge.
    pub(crate) fn origin(&self) -> Vec3 {
        if self.cap.is_whole() { self.references[0].at } else { self.edges[0].start }
    }

    /// Whether no two edges cross or touch but neighbours at their vertex. Pairs of edges, most of them
    /// settled by their middles.
    pub(crate) fn is_simple(&self) -> bool {
        let arcs: Vec<(Vec3, Vec3, Vec3)> = self.arcs().collect();
        let reach: Vec<(Vec3, f64)> =
            arcs.iter().map(|(a, b, _)| ((*a + *b) * 0.5, (*a - *b).norm() * 0.5 + bulge(*a, *b))).collect();
        let count = arcs.len();
        (0..count).all(|one| {
            (one + 1..count).all(|other| {
                let neighbours = other == one + 1 || (one == 0 && other == count - 1);
                let apart = (reach[one].0 - reach[other].0).norm() > reach[one].1 + reach[other].1;
                apart
                    || if neighbours {
                        !folded(&arcs[one], &arcs[other])
                    } else {
                        !meet(&arcs[one], &arcs[other])
                    }
            })
        })
    }

    pub(crate) fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Each edge's start, end and normal.
    pub(crate) fn arcs(&self) -> impl Iterator<Item = (Vec3, Vec3, Vec3)> + '_ {
        let next = self.edges.iter().cycle().skip(1);
        self.edges.iter().zip(next).map(|(edge, next)| (edge.start, next.start, edge.normal))
    }

    /// Whether a position is in it, its edges included. NaN is not.
    #[inline]
    pub fn contains(&self, p: Vec3) -> bool {
        if !self.cap.contains(p) {
            return self.complement && p.is_finite();
        }
        self.parity(p) != self.complement || self.touches(p)
    }

    /// Whether a position is on an edge.
    pub(crate) fn touches(&self, p: Vec3) -> bool {
        self.arcs().any(|arc| arc.2.dot(p).abs() <= TOUCH && spans(&arc, p))
    }

    /// Whether the chord to some edge has a square of at most `limit`. May say so for an edge farther away by
    /// rounding.
    pub(crate) fn edge_within(&self, p: Vec3, limit: f64) -> bool {
        self.arcs().any(|(start, end, normal)| great_arc_chord_squared(p, start, end, normal) <= limit)
    }

    /// Whether a position is in the smaller side; either for one on an edge.
    #[inline]
    fn parity(&self, p: Vec3) -> bool {
        let mut reference = self.references[0];
        let mut plane = reference.at.cross(p);
        if plane.norm_squared() < 0.01 {
            reference = self.references[1];
            plane = reference.at.cross(p);
        }
        reference.inside != crosses_oddly(&self.edges, reference.at, p, plane)
    }
}

/// Whether the arc from a reference to a position, in a plane with this normal, crosses an odd number of
/// edges.
#[inline]
fn crosses_oddly(edges: &[Edge], reference: Vec3, p: Vec3, plane: Vec3) -> bool {
    let mut odd = false;
    let mut last = &edges[edges.len() - 1];
    let mut last_left = plane.dot(last.start) >= 0.0;
    for edge in edges {
        let left = plane.dot(edge.start) >= 0.0;
        // The edge crosses the great circle to the position, within the arc and not at its antipode.
        if left != last_left
            && (last.normal.dot(p) >= 0.0) == last_left
            && (last.normal.dot(reference) >= 0.0) != last_left
        {
            odd = !odd;
        }
        (last, last_left) = (edge, left);
    }
    odd
}

fn refuse_antipodes(vertices: &[Vec3]) -> Result<(), Error> {
    for (index, vertex) in vertices.iter().enumerate() {
        let next = (index + 1) % vertices.len();
        if (*vertex + vertices[next]).norm() <= TOUCH {
            return Err(Error::Antipodal(index + 1, next + 1));
        }
    }
    Ok(())
}

/// Vertices without repetitions and without spurs; at least one.
fn clean(vertices: Vec<Vec3>) -> Vec<Vec3> {
    let mut kept: Vec<Vec3> = Vec::with_capacity(vertices.len());
    for vertex in vertices {
        if kept.last() == Some(&vertex) {
            continue;
        }
        if kept.len() >= 2 && kept[kept.len() - 2] == vertex {
            kept.pop();
            continue;
        }
        kept.push(vertex);
    }
    // The same where the end meets the beginning.
    let mut from = 0;
    while kept.len() - from > 1 {
        let last = kept.len() - 1;
        if kept[from] == kept[last] || kept[last - 1] == kept[from] {
            kept.pop();
        } else if kept[from + 1] == kept[last] {
            from += 1;
        } else {
            break;
        }
    }
    kept.split_off(from)
}

fn edges(vertices: &[Vec3]) -> Box<[Edge]> {
    let next = vertices.iter().cycle().skip(1);
    let normal = |start: Vec3, end: Vec3| {
        start.robust_cross(end).normalized().unwrap_or_else(|| start.perpendicular())
    };
    vertices
        .iter()
        .zip(next)
        .map(|(start, end)| Edge { start: *start, normal: normal(*start, *end) })
        .collect()
}

/// A quarter turn away from a narrow polygon, in the widest gap between the great circles of its edges.
fn narrow_references(edges: &[Edge], cap: &Cap) -> [Reference; 2] {
    let u = cap.center().perpendicular();
    let v = cap.center().cross(u);
    let turn = |angle: f64| angle.rem_euclid(PI);
    let mut zeros: Vec<f64> =
        edges.iter().map(|edge| turn(edge.normal.dot(v).atan2(edge.normal.dot(u)) + PI / 2.0)).collect();
    zeros.sort_unstable_by(f64::total_cmp);
    let first = zeros.first().copied().unwrap_or(0.0);
    let mut widest = (0.0, 0.0);
    for (index, zero) in zeros.iter().enumerate() {
        let gap = zeros.get(index + 1).copied().unwrap_or(first + PI) - zero;
        if gap > widest.0 {
            widest = (gap, zero + gap / 2.0);
        }
    }
    let (sine, cosine) = widest.1.sin_cos();
    // No position in the cap is near this reference or its antipode: the second one is never asked.
    [Reference { at: u * cosine + v * sine, inside: false }; 2]
}

/// The two of some positions all over the sphere that are farthest from the great circles of the edges.
fn wide_references(edges: &[Edge], cap: Option<&Cap>) -> [Reference; 2] {
    let clearance =
        |at: Vec3| edges.iter().map(|edge| edge.normal.dot(at).abs()).fold(f64::INFINITY, f64::min);
    let candidates: Vec<(Vec3, f64)> = (0..CANDIDATES)
        .map(|index| spread(index, CANDIDATES))
        .filter(|at| cap.is_none_or(|cap| !cap.contains(*at)))
        .map(|at| (at, clearance(at)))
        .collect();
    let best = |apart: Option<Vec3>| {
        candidates
            .iter()
            .filter(|(at, _)| apart.is_none_or(|other| at.cross(other).norm_squared() > 0.25))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(Vec3 { x: 1.0, y: 0.0, z: 0.0 }, |(at, _)| *at)
    };
    let first = best(None);
    let second = best(Some(first));
    let first = Reference { at: first, inside: cap.is_none() && inside(edges, first) };
    // The second one by the first, so that both agree on edges that cross.
    let inside = first.inside != crosses_oddly(edges, first.at, second, first.at.cross(second));
    [first, Reference { at: second, inside }]
}

/// How far the middle of an arc lies from the middle of its chord, and a little.
fn bulge(a: Vec3, b: Vec3) -> f64 {
    1.0 - (a + b).norm() * 0.5 + TOUCH
}

/// Whether a position on the great circle of an edge is between its ends.
fn spans(edge: &(Vec3, Vec3, Vec3), p: Vec3) -> bool {
    let (start, end, normal) = *edge;
    normal.dot(start.robust_cross(p)) >= -TOUCH && normal.dot(p.robust_cross(end)) >= -TOUCH
}

/// Whether two edges have a position in common, or nearly.
fn meet(one: &(Vec3, Vec3, Vec3), other: &(Vec3, Vec3, Vec3)) -> bool {
    let on = |edge: &(Vec3, Vec3, Vec3), p: Vec3| edge.2.dot(p).abs() <= 2.0 * TOUCH && spans(edge, p);
    if on(one, other.0) || on(one, other.1) || on(other, one.0) || on(other, one.1) {
        return true;
    }
    let left = |edge: &(Vec3, Vec3, Vec3), p: Vec3| edge.2.dot(p) > 0.0;
    let (a, b) = (left(one, other.0), left(one, other.1));
    a != b && left(other, one.0) != left(other, one.1) && a != left(other, one.0)
}

/// Whether an edge runs back along the one before it.
fn folded(one: &(Vec3, Vec3, Vec3), other: &(Vec3, Vec3, Vec3)) -> bool {
    one.2.dot(other.2) < 0.0 && one.2.cross(other.2).norm_squared() <= TOUCH
}

/// Position `index` of `count` spread over the sphere along a spiral.
pub(crate) fn spread(index: usize, count: usize) -> Vec3 {
    let z = 1.0 - (2.0 * index as f64 + 1.0) / count as f64;
    let (sine, cosine) = (index as f64 * 2.399_963_229_728_653).sin_cos();
    let across = (1.0 - z * z).sqrt();
    Vec3 { x: across * cosine, y: across * sine, z }
}

/// Whether a position away from all edges is in the smaller side: whether the side without it is the larger.
fn inside(edges: &[Edge], at: Vec3) -> bool {
    const EQUAL: f64 = 1e-11;
    let next = edges.iter().cycle().skip(1);
    // Triangles from the opposite place never cover this one.
    let other: f64 = edges.iter().zip(next).map(|(a, b)| triangle(-at, a.start, b.start)).sum();
    let more = other.abs() - TAU;
    // Two hemispheres: counter-clockwise as seen from the origin (DALI 1.2 3.10) is the right-hand side as
    // the normals count it.
    if more.abs() < EQUAL { other > 0.0 } else { more > 0.0 }
}

/// The square of the chord from a position to an arc of a great circle.
#[inline]
pub(crate) fn great_arc_chord_squared(p: Vec3, start: Vec3, end: Vec3, normal: Vec3) -> f64 {
    let foot_within = normal.cross(start).dot(p) >= 0.0 && end.cross(normal).dot(p) >= 0.0;
    if foot_within {
        let sine = normal.dot(p);
        let squared = sine * sine;
        2.0 * squared / (1.0 + (1.0 - squared).max(0.0).sqrt())
    } else {
        p.chord_squared(start).min(p.chord_squared(end))
    }
}

/// The signed area of a triangle in steradians, positive where the normal of `a`, `b` points to `o`.
pub(crate) fn triangle(o: Vec3, a: Vec3, b: Vec3) -> f64 {
    let volume = o.dot((a - o).cross(b - o));
    2.0 * volume.atan2(1.0 + o.dot(a) + a.dot(b) + b.dot(o))
}
