//! AREA and CENTROID.
//!
//! A circle, a range and a polygon whose edges do not cross have closed forms. Everything else (overlapping
//! shapes, edges that cross) is measured along the edge of the union: edges are parted where others cross
//! them, parts with the region on one side only are its edge, and both measures are line integrals over it.
//!
//! The centroid is the direction of the integral of the position over the region. Below [`FLAT`] it is that
//! of the plane, where the integral would lose its digits.

use std::f64::consts::{PI, TAU};

use super::arc::{Arc, NEAR};
use super::cap::Cap;
use super::geometry::Geometry;
use super::point::{Circle, Point, Range};
use super::polygon::{Polygon, spread, triangle};
use super::relate::{BESIDE, Part, beside, parts};
use super::{Vec3, angle};

/// The square degrees of a steradian.
const SQUARE_DEGREES: f64 = (180.0 / PI) * (180.0 / PI);

/// The radius in radians below which a region has the centroid of a plane one: 40 arc-seconds.
const FLAT: f64 = 2e-4;

/// The longest piece of an arc, around its axis, that is measured at once.
const PIECE: f64 = PI / 3.0;

impl Geometry {
    /// The area in square degrees (ADQL 2.1 4.2.8).
    pub fn area(&self) -> f64 {
        self.measure().area * SQUARE_DEGREES
    }

    /// The centroid (ADQL 2.1 4.2.10). Where none is distinguished (the whole sky, symmetrical unions) it is
    /// the centre of a cap that holds the geometry.
    pub fn centroid(&self) -> Point {
        match self {
            Self::Point(point) => *point,
            Self::Circle(circle) => circle.center(),
            _ => {
                let measure = self.measure();
                let distinct = measure.moment.norm() > 1e-12 * measure.area;
                let center = measure.moment.normalized().filter(|_| distinct && measure.area > 0.0);
                Point::from_vector(center.unwrap_or_else(|| self.cap().center()))
            }
        }
    }

    fn measure(&self) -> Measure {
        match self {
            Self::Point(_) => Measure::default(),
            Self::Circle(circle) => of_circle(circle),
            Self::Polygon(polygon) => of_polygon(polygon),
            Self::Region(_) => of_union(&parts(self)),
        }
    }
}

/// Steradians, and the integral of the position.
#[derive(Clone, Copy, Debug, Default)]
struct Measure {
    area: f64,
    moment: Vec3,
}

impl Measure {
    fn add(self, other: Self) -> Self {
        Self { area: self.area + other.area, moment: self.moment + other.moment }
    }
}

fn of_circle(circle: &Circle) -> Measure {
    of_cap(&circle.cap())
}

/// `2 pi (1 - cos r)`, without the difference.
fn of_cap(cap: &Cap) -> Measure {
    let degrees = cap.radius_degrees();
    let half = angle::sin_cos(degrees / 2.0).0;
    let sine = angle::sin_cos(degrees).0;
    Measure { area: 4.0 * PI * half * half, moment: cap.center() * (PI * sine * sine) }
}

fn of_range(range: &Range) -> Measure {
    let (lon, extent) = range.span();
    let (south, north) = range.lat();
    let turn = extent.to_radians();
    let (sin_sum, cos_sum) = angle::sin_cos(south + north);
    let sin_difference = angle::sin_cos(north - south).0;
    let sides = angle::sin_cos(f64::midpoint(south, north)).1 * angle::sin_cos((north - south) / 2.0).0;
    let across = angle::sin_cos(extent / 2.0).0 * ((north - south).to_radians() + cos_sum * sin_difference);
    let moment = Vec3::from_degrees(lon + extent / 2.0, 0.0) * across
        + Vec3 { x: 0.0, y: 0.0, z: 1.0 } * (0.5 * turn * sin_sum * sin_difference);
    Measure { area: 2.0 * turn * sides, moment }
}

fn of_polygon(polygon: &Polygon) -> Measure {
    let small = if polygon.is_simple() { simple(polygon) } else { of_edge(&[Part::of_polygon(polygon)]) };
    // The general way has looked at the side that is meant already.
    if polygon.is_complement() && polygon.is_simple() {
        return Measure { area: 4.0 * PI - small.area, moment: -small.moment };
    }
    small
}

/// The smaller side of a polygon whose edges do not cross.
fn simple(polygon: &Polygon) -> Measure {
    let origin = polygon.origin();
    let sum: f64 = polygon.arcs().map(|(a, b, _)| triangle(origin, a, b)).sum();
    // Seen from any place the sum is the area of one side or less that of the other, up to whole spheres.
    let signed = sum - 2.0 * TAU * (sum / (2.0 * TAU)).round();
    let moment =
        if polygon.small_cap().radius() < FLAT { flat_moment(polygon, origin) } else { moment(polygon) };
    Measure { area: signed.abs(), moment: moment * signed.signum() }
}

/// Half the sum of edges' normals, each as long as its edge.
fn moment(polygon: &Polygon) -> Vec3 {
    polygon.arcs().fold(Vec3::default(), |sum, (a, b, normal)| sum + normal * (a.angle(b) / 2.0))
}

/// The sum of the middles of plane triangles.
fn flat_moment(polygon: &Polygon, origin: Vec3) -> Vec3 {
    polygon.arcs().fold(Vec3::default(), |sum, (a, b, _)| sum + flat_triangle(origin, a, b).moment)
}

/// Shapes that overlap nothing have their closed forms; the others are measured along their common edge.
fn of_union(parts: &[Part<'_>]) -> Measure {
    if let [part] = parts {
        return of_part(part);
    }
    let alone = |index: usize| {
        let mut others = parts.iter().enumerate().filter(|(other, _)| *other != index);
        others.all(|(_, other)| !other.cap().meets(parts[index].cap()))
    };
    let mut sum = Measure::default();
    let mut tangled = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        if alone(index) {
            sum = sum.add(of_part(part));
        } else {
            tangled.push(index);
        }
    }
    if tangled.is_empty() {
        return sum;
    }
    let tangled: Vec<Part<'_>> = tangled.into_iter().map(|index| parts[index].clone()).collect();
    sum.add(of_edge(&tangled))
}

fn of_part(part: &Part<'_>) -> Measure {
    match part.form() {
        super::relate::Form::Cap(_) => of_cap(part.cap()),
        super::relate::Form::Polygon(polygon) => of_polygon(polygon),
        super::relate::Form::Range(range) => of_range(range),
    }
}

/// The measure of a union along its edge.
fn of_edge(parts: &[Part<'_>]) -> Measure {
    let arcs: Vec<&Arc> = parts.iter().flat_map(|part| &part.arcs).collect();
    let contains = |p: Vec3| parts.iter().any(|part| part.contains(p));
    let bounds = bounds(parts, &arcs);
    let origin = bounds.map_or_else(|| far_origin(&arcs), |cap| cap.center());
    let flat = bounds.is_some_and(|cap| cap.radius() < FLAT);
    let pieces = pieces(&arcs);
    let mut edge = Vec::new();
    for step in STEPS {
        edge = common_edge(&arcs, &pieces, contains, step);
        if closes(&edge) {
            break;
        }
    }
    let sum = edge.iter().fold(Measure::default(), |sum, (piece, sign)| {
        let part = along(piece.arc, piece.from, piece.to, origin, flat);
        sum.add(Measure { area: part.area * sign, moment: part.moment * *sign })
    });
    Measure { area: settle(sum.area, contains), ..sum }
}

/// How far beside an edge a union is asked whether it is there, in radians. Edges nearer than that count as one;
/// where that parts an edge from its other end, the next step is tried.
const STEPS: [f64; 4] = [BESIDE, 3.0 * BESIDE, 10.0 * BESIDE, 50.0 * BESIDE];

/// What of an arc lies between crossings with others.
struct Piece<'a> {
    arc: &'a Arc,
    /// The arc's place among all.
    index: usize,
    from: f64,
    to: f64,
}

fn pieces<'a>(arcs: &[&'a Arc]) -> Vec<Piece<'a>> {
    let parted = arcs.iter().enumerate().flat_map(|(index, arc)| {
        let mut angles = Vec::new();
        let others = arcs.iter().enumerate().filter(|(other, _)| *other != index);
        others.for_each(|(_, other)| arc.crossings(other, NEAR, &mut angles));
        arc.parts(angles).into_iter().map(move |(from, to)| Piece { arc, index, from, to })
    });
    parted.collect()
}

/// The pieces with the union on one side only, 1 for its left and -1 for its right.
fn common_edge<'a, 'b>(
    arcs: &[&'a Arc],
    pieces: &'b [Piece<'a>],
    contains: impl Fn(Vec3) -> bool,
    step: f64,
) -> Vec<(&'b Piece<'a>, f64)> {
    let mut edge = Vec::new();
    for piece in pieces {
        // Of edges that coincide the first one stands for all.
        let middle = piece.arc.at(f64::midpoint(piece.from, piece.to));
        if arcs[..piece.index].iter().any(|earlier| earlier.touches(middle, step)) {
            continue;
        }
        match beside(piece.arc, piece.from, piece.to, step).map(&contains) {
            [true, false] => edge.push((piece, 1.0)),
            [false, true] => edge.push((piece, -1.0)),
            _ => {}
        }
    }
    edge
}

/// Whether as many pieces end as begin, everywhere.
fn closes(edge: &[(&Piece<'_>, f64)]) -> bool {
    let sum = edge.iter().fold(Vec3::default(), |sum, (piece, sign)| {
        sum + (piece.arc.at(piece.to) - piece.arc.at(piece.from)) * *sign
    });
    sum.norm() < 1e-10
}

/// What a part of an arc adds to the integrals, the region to its left.
fn along(arc: &Arc, from: f64, to: f64, origin: Vec3, flat: bool) -> Measure {
    let pieces = ((to - from) / PIECE).ceil().max(1.0);
    let step = (to - from) / pieces;
    let mut sum = Measure::default();
    for piece in 0..pieces as u32 {
        let angle = from + f64::from(piece) * step;
        let (a, b) = (arc.at(angle), arc.at(angle + step));
        let mut measure = flat_triangle(origin, a, b);
        if !arc.is_great() {
            let segment = segment(arc, angle, step, a, b);
            measure = measure.add(segment);
        }
        if !flat {
            measure.moment = arc.moment(angle, angle + step);
        }
        sum = sum.add(measure);
    }
    sum
}

/// What lies between an arc and the great circle through its ends: a sector without its triangle, seen from
/// the nearer pole.
fn segment(arc: &Arc, angle: f64, step: f64, a: Vec3, b: Vec3) -> Measure {
    let (pole, radius, sign) = if arc.radius() <= PI / 2.0 {
        (arc.axis(), arc.radius(), 1.0)
    } else {
        (-arc.axis(), PI - arc.radius(), -1.0)
    };
    let half = (radius / 2.0).sin();
    let sector = sign * step * 2.0 * half * half;
    let middle = pole + (arc.at(angle + step / 2.0) - pole) * ((step / 2.0).sin() / (0.75 * step));
    let triangle = flat_triangle(pole, a, b);
    Measure { area: sector - triangle.area, moment: middle * sector - triangle.moment }
}

/// A triangle, its position integrated as in the plane.
fn flat_triangle(origin: Vec3, a: Vec3, b: Vec3) -> Measure {
    let area = triangle(origin, a, b);
    let middle = origin + ((a - origin) + (b - origin)) * (1.0 / 3.0);
    Measure { area, moment: middle * area }
}

/// A cap around a narrow region, from whose centre triangles to the arcs are measured.
fn bounds(parts: &[Part<'_>], arcs: &[&Arc]) -> Option<Cap> {
    let around = Cap::around(&arcs.iter().map(|arc| arc.start()))?;
    let reach = parts.iter().map(|part| around.center().angle(part.cap().center()) + part.cap().radius());
    let radius = reach.fold(0.0, f64::max);
    (radius < 1.0).then(|| Cap::from_radians(around.center(), radius))
}

/// A place for a wide region, far from all circles: a triangle to an arc through the opposite place has no
/// area.
fn far_origin(arcs: &[&Arc]) -> Vec3 {
    let clearance = |p: Vec3| {
        let apart = arcs.iter().map(|arc| (arc.axis().angle(-p) - arc.radius()).abs());
        apart.fold(f64::INFINITY, f64::min)
    };
    let candidates = (0..64).map(|index| spread(index, 64));
    let best = candidates.map(|p| (p, clearance(p))).max_by(|a, b| a.1.total_cmp(&b.1));
    best.map_or(Vec3 { x: 0.0, y: 0.0, z: 1.0 }, |(p, _)| p)
}

/// Brings a sum of triangles, known up to whole spheres, into one; between nothing and everything, asks.
fn settle(sum: f64, contains: impl Fn(Vec3) -> bool) -> f64 {
    let whole = 4.0 * PI;
    let area = sum.rem_euclid(whole);
    if area.min(whole - area) > 1e-9 {
        return area;
    }
    let inside = (0..64).filter(|index| contains(spread(*index, 64))).count();
    let near_nothing = if area > 1.0 { area - whole } else { area };
    if inside > 32 { whole + near_nothing.min(0.0) } else { near_nothing.max(0.0) }
}

#[cfg(test)]
mod tests;
