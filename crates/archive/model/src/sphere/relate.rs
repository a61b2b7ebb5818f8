//! CONTAINS and INTERSECTS between any two geometries.
//!
//! Bounding caps settle most pairs. Two circles are compared by their centres and radii, a position by the
//! test of the other shape. For the rest the edges of each are parted where the other's edges cross them
//! ([`super::arc`]), and then every part lies on one side of the other shape: its middle tells which.
//!
//! `A` is within the union `B` if each part of A's edges is in B, and nowhere beside an edge of B is there a
//! position of A that is not in B. The second condition finds what of B's outside lies in A without being cut
//! by A's edges, and holds for shapes of B that touch or overlap. A gap in B narrower than [`BESIDE`] counts
//! as closed.
//!
//! Cost: pairs of edges. A footprint of few vertices takes microseconds.

use super::Vec3;
use super::arc::{Arc, NEAR};
use super::cap::{Cap, TOUCH};
use super::geometry::{Geometry, Shape};
use super::point::{Circle, Range};
use super::polygon::Polygon;

/// How far beside an edge, in radians, a shape is asked whether it is there: four nano-arcseconds, ten times
/// what an edge may be off.
pub(crate) const BESIDE: f64 = 2e-14;

/// Whether the first geometry is wholly within the second, edges included (ADQL 2.1 4.2.12).
pub fn contains(inner: &Geometry, outer: &Geometry) -> bool {
    match (inner, outer) {
        (Geometry::Point(point), _) => outer.contains_vector(point.vector()),
        (Geometry::Circle(inner), Geometry::Circle(outer)) => outer.cap().holds(&inner.cap()),
        _ if !inner.cap().meets(&outer.cap()) => false,
        _ => {
            let outer = parts(outer);
            parts(inner).iter().all(|part| within(part, &outer))
        }
    }
}

/// Whether two geometries have a position in common (ADQL 2.1 4.2.17).
pub fn intersects(a: &Geometry, b: &Geometry) -> bool {
    match (a, b) {
        (Geometry::Point(point), other) | (other, Geometry::Point(point)) => {
            other.contains_vector(point.vector())
        }
        (Geometry::Circle(a), Geometry::Circle(b)) => a.cap().meets(&b.cap()),
        _ if !a.cap().meets(&b.cap()) => false,
        _ => {
            let b = parts(b);
            parts(a).iter().any(|a| b.iter().any(|b| meet(a, b)))
        }
    }
}

/// A shape as its test and its edges.
#[derive(Clone)]
pub(crate) struct Part<'a> {
    form: Form<'a>,
    cap: Cap,
    pub(crate) arcs: Vec<Arc>,
    /// A position of each connected piece of the edges, or any position of what has none.
    anchors: Vec<Vec3>,
}

/// What a shape is tested by.
#[derive(Clone, Copy)]
pub(crate) enum Form<'a> {
    /// A cap, wider by what a computed position of its edge may be off.
    Cap(Cap),
    Polygon(&'a Polygon),
    Range(&'a Range),
}

/// The shapes of a geometry.
pub(crate) fn parts(geometry: &Geometry) -> Vec<Part<'_>> {
    match geometry {
        Geometry::Point(point) => vec![Part::of_cap(Cap::new(point.vector(), 0.0))],
        Geometry::Circle(circle) => vec![Part::of_circle(circle)],
        Geometry::Polygon(polygon) => vec![Part::of_polygon(polygon)],
        Geometry::Region(region) => region.shapes().iter().map(Part::new).collect(),
    }
}

impl<'a> Part<'a> {
    pub(crate) fn new(shape: &'a Shape) -> Self {
        match shape {
            Shape::Circle(circle) => Self::of_circle(circle),
            Shape::Polygon(polygon) => Self::of_polygon(polygon),
            Shape::Range(range) => Self::of_range(range),
        }
    }

    fn of_circle(circle: &Circle) -> Self {
        Self::of_cap(circle.cap())
    }

    fn of_cap(cap: Cap) -> Self {
        let edge = cap.radius() > 0.0 && !cap.is_whole();
        let arcs: Vec<Arc> = edge.then(|| Arc::edge(&cap)).into_iter().collect();
        let anchors = vec![arcs.first().map_or_else(|| cap.center(), Arc::start)];
        let test = if edge { Cap::from_radians(cap.center(), cap.radius() + TOUCH) } else { cap };
        Self { form: Form::Cap(test), cap, arcs, anchors }
    }

    pub(crate) fn of_polygon(polygon: &'a Polygon) -> Self {
        let arcs = polygon
            .arcs()
            .filter(|(start, end, _)| start != end)
            .map(|(start, end, normal)| Arc::great(start, end, normal))
            .collect();
        let anchors = polygon.edges().first().map(|edge| edge.start).into_iter().collect();
        Self { form: Form::Polygon(polygon), cap: polygon.cap(), arcs, anchors }
    }

    fn of_range(range: &'a Range) -> Self {
        let (lon, extent) = range.span();
        let (south, north) = range.lat();
        let mut arcs = Vec::with_capacity(4);
        if extent > 0.0 {
            let parallels = [south, north].into_iter().filter(|lat| lat.abs() < 90.0);
            arcs.extend(parallels.map(|lat| Arc::parallel(lon, extent, lat)));
        }
        if extent < 360.0 && south < north {
            arcs.extend([lon, lon + extent].map(|lon| Arc::meridian(lon, south, north)));
        }
        let anchors = if arcs.is_empty() {
            vec![Vec3::from_degrees(lon, south)]
        } else {
            arcs.iter().map(Arc::start).collect()
        };
        Self { form: Form::Range(range), cap: range.cap(), arcs, anchors }
    }

    pub(crate) fn contains(&self, p: Vec3) -> bool {
        match self.form {
            Form::Cap(cap) => cap.contains(p),
            Form::Polygon(polygon) => polygon.contains(p),
            Form::Range(range) => range.contains(p),
        }
    }

    pub(crate) fn form(&self) -> Form<'a> {
        self.form
    }

    pub(crate) fn cap(&self) -> &Cap {
        &self.cap
    }

    /// Whether it is one position.
    fn is_point(&self) -> bool {
        self.arcs.is_empty() && !self.cap.is_whole()
    }
}

/// Whether a shape is within a union of others.
fn within(inner: &Part<'_>, outer: &[Part<'_>]) -> bool {
    let near: Vec<&Part<'_>> = outer.iter().filter(|part| part.cap.meets(&inner.cap)).collect();
    if near.iter().any(|part| part.cap.is_whole() && part.arcs.is_empty()) {
        return true;
    }
    if inner.is_point() {
        return near.iter().any(|part| inner.anchors.iter().all(|p| part.contains(*p)));
    }
    if near.iter().all(|part| part.is_point()) {
        return false;
    }
    let in_outer = |p: Vec3| near.iter().any(|part| part.contains(p));
    let edges_within = inner.arcs.iter().all(|arc| {
        let mut angles = Vec::new();
        near.iter().flat_map(|part| &part.arcs).for_each(|other| arc.crossings(other, NEAR, &mut angles));
        arc.parts(angles).into_iter().all(|(from, to)| in_outer(arc.at(f64::midpoint(from, to))))
    });
    edges_within
        && near.iter().enumerate().all(|(index, part)| {
            let others =
                || near.iter().enumerate().filter(move |(other, _)| *other != index).map(|(_, part)| part);
            part.arcs.iter().all(|arc| {
                let mut angles = Vec::new();
                inner.arcs.iter().for_each(|other| arc.crossings(other, NEAR, &mut angles));
                others()
                    .flat_map(|part| &part.arcs)
                    .for_each(|other| arc.crossings(other, NEAR, &mut angles));
                arc.parts(angles).into_iter().all(|(from, to)| {
                    beside(arc, from, to, BESIDE).into_iter().all(|p| !inner.contains(p) || in_outer(p))
                })
            })
        })
}

/// Positions just to the left and to the right of the middle of a part of an arc.
pub(crate) fn beside(arc: &Arc, from: f64, to: f64, step: f64) -> [Vec3; 2] {
    let middle = f64::midpoint(from, to);
    let step = arc.left(middle) * step.min(arc.length(from, to) / 64.0);
    [arc.at(middle) + step, arc.at(middle) - step]
}

/// Whether two shapes have a position in common.
fn meet(a: &Part<'_>, b: &Part<'_>) -> bool {
    if !a.cap.meets(&b.cap) {
        return false;
    }
    if a.anchors.iter().any(|p| b.contains(*p)) || b.anchors.iter().any(|p| a.contains(*p)) {
        return true;
    }
    let mut scratch = Vec::new();
    a.arcs.iter().any(|arc| b.arcs.iter().any(|other| arc.meets(other, &mut scratch)))
}

#[cfg(test)]
mod tests;
