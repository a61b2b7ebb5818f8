//! Regions, and whatever a query calls a geometry.

use super::cap::{Cap, TOUCH};
use super::point::{Circle, Point, Range};
use super::polygon::Polygon;
use super::{Error, Vec3};
use crate::limits::{SHAPES_MAX, VERTICES_MAX};

/// One shape of a region.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A circle; a position is one of radius 0.
    Circle(Circle),
    /// A polygon.
    Polygon(Polygon),
    /// A coordinate range.
    Range(Range),
}

impl Shape {
    /// Whether a position is in it.
    pub fn contains(&self, p: Vec3) -> bool {
        match self {
            Self::Circle(circle) => circle.cap().contains(p),
            Self::Polygon(polygon) => polygon.contains(p),
            Self::Range(range) => range.contains(p),
        }
    }

    /// A cap that holds it.
    pub fn cap(&self) -> Cap {
        match self {
            Self::Circle(circle) => circle.cap(),
            Self::Polygon(polygon) => polygon.cap(),
            Self::Range(range) => range.cap(),
        }
    }
}

/// A union of shapes (DALI 1.2 3.13), at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    shapes: Box<[Shape]>,
    cap: Cap,
}

impl Region {
    /// The union of these.
    pub fn new(shapes: Vec<Shape>) -> Result<Self, Error> {
        if shapes.len() > SHAPES_MAX {
            return Err(Error::TooMany(SHAPES_MAX, "shapes"));
        }
        let vertices = shapes.iter().map(|shape| match shape {
            Shape::Polygon(polygon) => polygon.coordinates().len() / 2,
            Shape::Circle(_) | Shape::Range(_) => 1,
        });
        if vertices.sum::<usize>() > VERTICES_MAX {
            return Err(Error::TooMany(VERTICES_MAX, "vertices"));
        }
        if shapes.is_empty() {
            return Err(Error::Syntax { message: "a region has at least one shape", position: 1 });
        }
        let cap = bounds(&shapes);
        Ok(Self { shapes: shapes.into(), cap })
    }

    /// Its shapes.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// A cap that holds it.
    pub fn cap(&self) -> Cap {
        self.cap
    }

    /// Whether a position is in it.
    pub fn contains(&self, p: Vec3) -> bool {
        self.shapes.iter().any(|shape| shape.contains(p))
    }
}

impl From<Shape> for Region {
    fn from(shape: Shape) -> Self {
        Self { cap: shape.cap(), shapes: Box::new([shape]) }
    }
}

/// A cap that holds several shapes.
fn bounds(shapes: &[Shape]) -> Cap {
    if let [shape] = shapes {
        return shape.cap();
    }
    let caps = || shapes.iter().map(Shape::cap);
    let Some(around) = Cap::around(&caps().map(|cap| cap.center())) else { return Cap::whole() };
    let radius = caps().map(|cap| around.center().angle(cap.center()) + cap.radius()).fold(0.0, f64::max);
    Cap::from_radians(around.center(), radius * (1.0 + 1e-15) + TOUCH)
}

/// A value of any geometric type of ADQL.
#[derive(Clone, Debug, PartialEq)]
pub enum Geometry {
    /// POINT.
    Point(Point),
    /// CIRCLE.
    Circle(Circle),
    /// POLYGON and BOX.
    Polygon(Polygon),
    /// REGION.
    Region(Region),
}

impl Geometry {
    /// Whether a position is in it.
    pub fn contains_vector(&self, p: Vec3) -> bool {
        match self {
            Self::Point(point) => point.vector() == p,
            Self::Circle(circle) => circle.cap().contains(p),
            Self::Polygon(polygon) => polygon.contains(p),
            Self::Region(region) => region.contains(p),
        }
    }

    /// A cap that holds it.
    pub fn cap(&self) -> Cap {
        match self {
            Self::Point(point) => Cap::new(point.vector(), 0.0),
            Self::Circle(circle) => circle.cap(),
            Self::Polygon(polygon) => polygon.cap(),
            Self::Region(region) => region.cap(),
        }
    }
}

impl From<Point> for Geometry {
    fn from(point: Point) -> Self {
        Self::Point(point)
    }
}

impl From<Circle> for Geometry {
    fn from(circle: Circle) -> Self {
        Self::Circle(circle)
    }
}

impl From<Polygon> for Geometry {
    fn from(polygon: Polygon) -> Self {
        Self::Polygon(polygon)
    }
}

impl From<Region> for Geometry {
    fn from(region: Region) -> Self {
        Self::Region(region)
    }
}
