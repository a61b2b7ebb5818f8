//! Geometry (ADQL 2.1 4.2): constructors in all their spellings, predicates and distances.
//!
//! A leading coordinate system is checked and dropped: nothing is converted (ADQL 2.1 4.2.5). Where both sides of a
//! predicate name one and the systems cannot be meant together, the query is refused rather than answered wrongly.

use super::Resolver;
use super::call::{Called, wrong_count};
use super::coerce::{Operand, to_double, to_point};
use super::error::{Error, Problem, Result};
use super::predicate::boolean;
use crate::ast::{self, Arguments, ExprKind};
use crate::functions::{FRAMES, Function};
use crate::span::Span;
use crate::suggest::nearest;
use crate::tree::{Expr, Kind, Value};
use crate::types::Type;

/// A coordinate system that a constructor may name; spellings as STC-S has them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// Any: nothing was said.
    Unknown,
    Icrs,
    Fk5,
    Fk4,
    Galactic,
    Ecliptic,
}

impl Frame {
    /// The frame that a text names: a frame, perhaps a reference position, perhaps a flavour, or nothing.
    fn named(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace().map(str::to_ascii_uppercase);
        let frame = match words.next().as_deref() {
            None | Some("UNKNOWN" | "UNKNOWNFRAME") => Self::Unknown,
            Some("ICRS") => Self::Icrs,
            Some("FK5" | "J2000") => Self::Fk5,
            Some("FK4" | "B1950") => Self::Fk4,
            Some("GALACTIC") => Self::Galactic,
            Some("ECLIPTIC") => Self::Ecliptic,
            Some(word) if is_position(word) => Self::Unknown,
            Some(_) => return None,
        };
        words.all(|word| is_position(&word)).then_some(frame)
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Icrs => "ICRS",
            Self::Fk5 => "FK5",
            Self::Fk4 => "FK4",
            Self::Galactic => "GALACTIC",
            Self::Ecliptic => "ECLIPTIC",
        }
    }

    /// Whether coordinates in both may be compared as they are. FK5 is ICRS to 0.1 arc seconds, and people mix them.
    fn agrees(self, other: Self) -> bool {
        let class = |frame| if frame == Self::Fk5 { Self::Icrs } else { frame };
        self == Self::Unknown || other == Self::Unknown || class(self) == class(other)
    }
}

/// The words of STC-S that say from where, and in which coordinates.
fn is_position(word: &str) -> bool {
    matches!(word, "BARYCENTER" | "GEOCENTER" | "HELIOCENTER" | "TOPOCENTER" | "LSR" | "RELOCATABLE")
        || matches!(word, "UNKNOWNREFPOS" | "SPHERICAL2" | "J2000" | "B1950")
}

/// A text read as a region (ADQL 2.1 4.2.20).
pub(super) fn region(text: Expr) -> Expr {
    Expr::new(Kind::Call(Function::Region, vec![text]), Type::Region)
}

impl Resolver<'_> {
    /// POINT, CIRCLE, BOX and POLYGON.
    pub(super) fn constructor(&mut self, function: Function, called: &Called<'_>) -> Result<Expr> {
        let arguments = self.without_frame(called.arguments)?;
        let called = Called { arguments, ..*called };
        match function {
            Function::Point => {
                let numbers = self.coordinates(&called, 0, 2, "lon, lat")?;
                Ok(Expr::new(Kind::Call(function, numbers), Type::Point))
            }
            Function::Circle => {
                let numbers = self.coordinates(&called, 1, 1, "lon, lat, radius or POINT, radius")?;
                Ok(Expr::new(Kind::Call(function, numbers), Type::Circle))
            }
            Function::Box => {
                let takes = "lon, lat, width, height or POINT, width, height";
                let numbers = self.coordinates(&called, 1, 2, takes)?;
                Ok(Expr::new(Kind::Call(function, numbers), Type::Polygon))
            }
            _ => self.polygon(&called),
        }
    }

    /// The arguments of a constructor without its coordinate system, which is checked.
    fn without_frame<'q>(&mut self, arguments: &'q [ast::Expr]) -> Result<&'q [ast::Expr]> {
        let Some((first, others)) = arguments.split_first() else { return Ok(arguments) };
        match &first.kind {
            ExprKind::Literal(literal) => match &literal.value {
                Value::Text(text) => {
                    Frame::named(text).ok_or_else(|| {
                        Error::at(Problem::UnknownFrame(format!("'{text}'")), first.span()).hint(
                            "ICRS, FK5, FK4, GALACTIC, ECLIPTIC and '' are known, and it may be left out",
                        )
                    })?;
                    self.require(literal);
                    Ok(others)
                }
                _ => Ok(arguments),
            },
            _ => Ok(arguments),
        }
    }

    /// So many positions, each as two numbers or as a point, and so many numbers after them; all as Doubles.
    fn coordinates(
        &mut self,
        called: &Called<'_>,
        positions: usize,
        numbers: usize,
        takes: &str,
    ) -> Result<Vec<Expr>> {
        let given = called.arguments.len();
        let as_points = positions > 0 && given == positions + numbers;
        if !as_points && given != 2 * positions + numbers {
            // Perhaps one too many: a coordinate system that is no literal.
            called.arguments.first().map(|first| self.coordinate(first)).transpose()?;
            return Err(wrong_count(called, takes.to_owned()));
        }
        let mut all = Vec::with_capacity(2 * positions + numbers);
        for (index, argument) in called.arguments.iter().enumerate() {
            let operand = self.coordinate(argument)?;
            if as_points && index < positions {
                all.extend(self.taken_apart(operand)?);
            } else {
                all.push(to_double(operand)?);
            }
        }
        Ok(all)
    }

    /// An argument of a constructor. A text there was meant as a coordinate system.
    fn coordinate(&mut self, argument: &ast::Expr) -> Result<Operand> {
        let expr = self.value(argument)?;
        if expr.ty == Type::Text && expr.as_literal().is_none() {
            return Err(Error::at(Problem::NotLiteral("a coordinate system"), argument.span()));
        }
        Ok(Operand::new(expr, argument.span()))
    }

    /// Both coordinates of a point.
    fn taken_apart(&mut self, operand: Operand) -> Result<[Expr; 2]> {
        let span = operand.span;
        let point = to_point(operand)?;
        match point.kind {
            Kind::Call(Function::Point, numbers) => {
                let pair: std::result::Result<[Expr; 2], _> = numbers.try_into();
                Ok(pair.expect("a point has two coordinates"))
            }
            kind => {
                let point = Expr::new(kind, Type::Point);
                let copy = self.copy(&point, span)?;
                let of = |function, point| Expr::new(Kind::Call(function, vec![point]), Type::Double);
                Ok([of(Function::Coord1, copy), of(Function::Coord2, point)])
            }
        }
    }

    /// POLYGON of numbers or of points, three vertices at least.
    fn polygon(&mut self, called: &Called<'_>) -> Result<Expr> {
        let takes = "three or more vertices: lon1, lat1, lon2, lat2, lon3, lat3, ... or as many POINTs";
        let mut operands = Vec::with_capacity(called.arguments.len());
        for argument in called.arguments {
            operands.push(self.coordinate(argument)?);
        }
        let points = operands.first().is_some_and(|first| first.expr.ty.is_geometry());
        let wrong = if points { operands.len() < 3 } else { operands.len() < 6 || operands.len() % 2 == 1 };
        if wrong {
            return Err(wrong_count(called, takes.to_owned()));
        }
        let mut numbers = Vec::with_capacity(operands.len() * (1 + usize::from(points)));
        for operand in operands {
            if points {
                numbers.extend(self.taken_apart(operand)?);
            } else {
                numbers.push(to_double(operand)?);
            }
        }
        Ok(Expr::new(Kind::Call(Function::Polygon, numbers), Type::Polygon))
    }

    /// DISTANCE of two points or of four numbers.
    pub(super) fn distance(&mut self, called: &Called<'_>) -> Result<Expr> {
        check_frames(called.arguments)?;
        let numbers = self.coordinates(called, 2, 0, "two POINTs or lon1, lat1, lon2, lat2")?;
        Ok(Expr::new(Kind::Call(Function::Distance, numbers), Type::Double))
    }

    /// CONTAINS and INTERSECTS. A point intersects what contains it (ADQL 2.1 4.2.6, 4.2.17).
    pub(super) fn geometric_predicate(&mut self, function: Function, called: &Called<'_>) -> Result<Expr> {
        check_frames(called.arguments)?;
        let (_, mut arguments) = self.arguments(called)?;
        let is_point = |index: usize| arguments[index].ty == Type::Point;
        let function = match function {
            Function::Intersects if is_point(0) => Function::Contains,
            Function::Intersects if is_point(1) => {
                arguments.swap(0, 1);
                Function::Contains
            }
            other => other,
        };
        Ok(boolean(Kind::Call(function, arguments)))
    }

    /// COORDSYS: of a constructor what it was told, of anything else what is known of it, which is nothing.
    pub(super) fn coordinate_system(&mut self, called: &Called<'_>) -> Result<Expr> {
        let (_, arguments) = self.arguments(called)?;
        let frame = called.arguments.first().and_then(frame_of);
        Ok(match frame {
            Some((frame, _)) => Expr::computed(Value::Text(frame.text().into()), Type::Text),
            None => Expr::new(Kind::Call(Function::CoordSys, arguments), Type::Text),
        })
    }

    /// `ivo_healpix_index(order, point)`.
    pub(super) fn healpix_of_point(&mut self, called: &Called<'_>) -> Result<Expr> {
        let (_, mut arguments) = self.arguments(called)?;
        let point = arguments.pop().expect("the form has two");
        let [lon, lat] = self.taken_apart(Operand::new(point, called.span))?;
        arguments.extend([lon, lat]);
        Ok(Expr::new(Kind::Call(Function::HealpixIndex, arguments), Type::Long))
    }

    /// `ivo_geom_transform(from, to, geometry)`: both frames are literals that we know.
    pub(super) fn transform(&mut self, called: &Called<'_>) -> Result<Expr> {
        let (_, arguments) = self.arguments(called)?;
        for argument in &called.arguments[..2] {
            self.check_vocabulary(argument)?;
        }
        let ty = arguments[2].ty;
        Ok(Expr::new(Kind::Call(Function::GeometryTransform, arguments), ty))
    }

    /// Words of the vocabulary heed case.
    fn check_vocabulary(&mut self, argument: &ast::Expr) -> Result<()> {
        let ExprKind::Literal(literal) = &argument.kind else { return Ok(()) };
        self.require(literal);
        let Value::Text(text) = &literal.value else { return Ok(()) };
        if FRAMES.contains(&&**text) {
            return Ok(());
        }
        let near = nearest(text, FRAMES).map_or_else(
            || format!("{} are known", FRAMES.join(", ")),
            |near| format!("did you mean '{near}'? Case counts"),
        );
        Err(Error::at(Problem::UnknownFrame(format!("'{text}'")), argument.span()).hint(near))
    }
}

/// The coordinate system that a constructor names, and where.
fn frame_of(expr: &ast::Expr) -> Option<(Frame, Span)> {
    let ExprKind::Call(call) = &expr.kind else { return None };
    let Arguments::List(arguments) = &call.arguments else { return None };
    let name = &*call.name.name.text;
    let constructs = ["POINT", "CIRCLE", "BOX", "POLYGON"].iter().any(|it| it.eq_ignore_ascii_case(name));
    let first = arguments.first().filter(|_| constructs)?;
    let ExprKind::Literal(literal) = &first.kind else { return None };
    match &literal.value {
        Value::Text(text) => Frame::named(text).map(|frame| (frame, first.span())),
        _ => None,
    }
}

/// Refuses geometries whose coordinate systems cannot be compared.
fn check_frames(arguments: &[ast::Expr]) -> Result<()> {
    let mut frames = arguments.iter().filter_map(frame_of);
    let Some((first, _)) = frames.next() else { return Ok(()) };
    match frames.find(|(frame, _)| !frame.agrees(first)) {
        None => Ok(()),
        Some((other, span)) => Err(Error::at(Problem::Frames(first.text(), other.text()), span)
            .hint("ivo_geom_transform(from, to, geometry) makes one of the other")),
    }
}
