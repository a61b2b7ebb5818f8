//! Shapes from text: DALI and STC-S.
//!
//! ```text
//! text  = numbers | shape+
//! shape = label frame* numbers | ("union" frame* | "not") "(" shape+ ")" | "not" shape
//! ```
//!
//! Labels, in any case: `circle`, `polygon`, `range` (DALI), `position` or `point`, `box`,
//! `positioninterval`, `allsky`. Several shapes one after another are their union, with `union` or without.
//! `ellipse`, `convex`, `intersection` and `difference`, which are no union of our shapes, are refused, and so
//! is `not` of anything but one circle or polygon.
//!
//! A frame is `ICRS`, `FK5`, `FK4`, `J2000`, `B1950`, `GALACTIC`, `ECLIPTIC` or `UNKNOWNFRAME`. The
//! coordinates of FK4, galactic and ecliptic ones are turned into ICRS ([`crate::astro::Transform`]); those
//! of FK5 J2000 stand as they are, since archives write `J2000` where they mean ICRS. Words for a reference
//! position and for spherical coordinates are passed over.
//!
//! Texts of any length are read in one pass; nesting is bounded.

use crate::astro::{Frame, Transform};
use crate::limits::{REGION_DEPTH_MAX, SHAPES_MAX, VERTICES_MAX};
use crate::sphere::{Circle, Error, Point, Polygon, Range, Region, Shape};

/// Reads a region: a DALI shape or several, or STC-S.
pub fn region(text: &str) -> Result<Region, Error> {
    let mut reader = Reader::new(text);
    let mut shapes = Vec::new();
    while !reader.at_end() {
        reader.shape(Frame::Icrs, 0, &mut shapes)?;
    }
    if shapes.is_empty() {
        return Err(reader.wrong("a shape is expected"));
    }
    Region::new(shapes)
}

/// Reads a point: `lon lat` (DALI 1.2 3.7), or a labelled position.
pub fn point(text: &str) -> Result<Point, Error> {
    let mut reader = Reader::new(text);
    if reader.has_number() {
        let numbers = reader.all_numbers()?;
        let [lon, lat] = *numbers else { return Err(reader.wrong("a point has two numbers")) };
        return Point::new(lon, lat);
    }
    match one_shape(text)? {
        Shape::Circle(circle) if circle.radius() == 0.0 => Ok(circle.center()),
        _ => Err(reader.wrong("a point is expected")),
    }
}

/// Reads a circle: `lon lat radius` (DALI 1.2 3.8), or a labelled one.
pub fn circle(text: &str) -> Result<Circle, Error> {
    let mut reader = Reader::new(text);
    if reader.has_number() {
        let numbers = reader.all_numbers()?;
        let [lon, lat, radius] = *numbers else { return Err(reader.wrong("a circle has three numbers")) };
        return Circle::new(lon, lat, radius);
    }
    match one_shape(text)? {
        Shape::Circle(circle) => Ok(circle),
        _ => Err(reader.wrong("a circle is expected")),
    }
}

/// Reads a polygon: longitudes and latitudes in turn (DALI 1.2 3.10), or a labelled one.
pub fn polygon(text: &str) -> Result<Polygon, Error> {
    let mut reader = Reader::new(text);
    if reader.has_number() {
        return Polygon::new(&reader.all_numbers()?);
    }
    match one_shape(text)? {
        Shape::Polygon(polygon) => Ok(polygon),
        _ => Err(reader.wrong("a polygon is expected")),
    }
}

fn one_shape(text: &str) -> Result<Shape, Error> {
    let region = region(text)?;
    match region.shapes() {
        [shape] => Ok(shape.clone()),
        _ => Err(Error::Syntax { message: "one shape is expected", position: 1 }),
    }
}

struct Reader<'a> {
    text: &'a str,
    /// Where the next word begins, white space passed over.
    place: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        let mut reader = Self { text, place: 0 };
        reader.pass_space();
        reader
    }

    fn rest(&self) -> &'a str {
        &self.text[self.place..]
    }

    fn at_end(&self) -> bool {
        self.place == self.text.len()
    }

    fn wrong(&self, message: &'static str) -> Error {
        Error::Syntax { message, position: self.text[..self.place].chars().count() + 1 }
    }

    fn pass_space(&mut self) {
        // Commas between numbers are not in the standards, but in tables.
        let rest = self.rest().trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        self.place = self.text.len() - rest.len();
    }

    fn pass(&mut self, bytes: usize) {
        self.place += bytes;
        self.pass_space();
    }

    fn take(&mut self, literal: char) -> bool {
        let found = self.rest().starts_with(literal);
        if found {
            self.pass(1);
        }
        found
    }

    /// The letters and digits that come next, beginning with a letter.
    fn peek_word(&self) -> Option<&'a str> {
        let rest = self.rest();
        rest.starts_with(|c: char| c.is_ascii_alphabetic()).then(|| {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            &rest[..end]
        })
    }

    fn has_number(&self) -> bool {
        self.rest().starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
    }

    fn number(&mut self) -> Result<f64, Error> {
        let rest = self.rest();
        let part = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        let word = &rest[..rest.find(|c| !part(c)).unwrap_or(rest.len())];
        let number: f64 = word.parse().map_err(|_| self.wrong("a number is expected"))?;
        self.pass(word.len());
        Ok(number)
    }

    fn numbers(&mut self) -> Result<Vec<f64>, Error> {
        let mut numbers = Vec::new();
        while self.has_number() {
            if numbers.len() == 2 * VERTICES_MAX {
                return Err(Error::TooMany(VERTICES_MAX, "vertices"));
            }
            numbers.push(self.number()?);
        }
        Ok(numbers)
    }

    fn all_numbers(&mut self) -> Result<Vec<f64>, Error> {
        let numbers = self.numbers()?;
        if self.at_end() { Ok(numbers) } else { Err(self.wrong("a number is expected")) }
    }

    /// Exactly so many numbers.
    fn exactly<const COUNT: usize>(&mut self, message: &'static str) -> Result<[f64; COUNT], Error> {
        let numbers = self.numbers()?;
        numbers.try_into().map_err(|_| self.wrong(message))
    }

    /// Reads one shape, or the shapes of a union.
    fn shape(&mut self, frame: Frame, depth: usize, shapes: &mut Vec<Shape>) -> Result<(), Error> {
        if depth > REGION_DEPTH_MAX {
            return Err(Error::TooMany(REGION_DEPTH_MAX, "nested regions"));
        }
        if shapes.len() >= SHAPES_MAX {
            return Err(Error::TooMany(SHAPES_MAX, "shapes"));
        }
        let start = self.place;
        let Some(label) = self.peek_word() else { return Err(self.wrong("the name of a shape is expected")) };
        self.pass(label.len());
        let frame = self.frame(frame)?;
        match label.to_ascii_lowercase().as_str() {
            "union" => return self.group(frame, depth, shapes),
            "not" => return self.not(frame, depth, shapes),
            _ => {}
        }
        let shape = self.plain_shape(label, start)?;
        self.units()?;
        shapes.push(turned(shape, frame)?);
        Ok(())
    }

    fn plain_shape(&mut self, label: &str, start: usize) -> Result<Shape, Error> {
        Ok(match label.to_ascii_lowercase().as_str() {
            "circle" => {
                let [lon, lat, radius] = self.exactly("a circle has a longitude, a latitude and a radius")?;
                Shape::Circle(Circle::new(lon, lat, radius)?)
            }
            "position" | "point" => {
                let [lon, lat] = self.exactly("a position has a longitude and a latitude")?;
                Shape::Circle(Circle::new(lon, lat, 0.0)?)
            }
            "polygon" => Shape::Polygon(Polygon::new(&self.numbers()?)?),
            "box" => {
                let [lon, lat, width, height] = self.exactly("a box has a centre, a width and a height")?;
                Shape::Polygon(Polygon::from_box(lon, lat, width, height)?)
            }
            "range" => {
                let [lon1, lon2, lat1, lat2] =
                    self.exactly("a range has two longitudes and two latitudes")?;
                Shape::Range(Range::new(lon1, lon2, lat1, lat2)?)
            }
            "positioninterval" => {
                let [lon1, lat1, lon2, lat2] = self.exactly("a position interval has two corners")?;
                Shape::Range(Range::new(lon1, lon2, lat1, lat2)?)
            }
            "allsky" => Shape::Circle(Circle::new(0.0, 0.0, 180.0)?),
            "ellipse" => return Err(Error::Unsupported("an ellipse")),
            "convex" => return Err(Error::Unsupported("a convex of half-spaces")),
            "intersection" => return Err(Error::Unsupported("an intersection of regions")),
            "difference" => return Err(Error::Unsupported("a difference of regions")),
            _ => {
                self.place = start;
                return Err(
                    self.wrong("a shape is expected, like circle, polygon, box, range, position or union")
                );
            }
        })
    }

    /// Passes over words for the frame, the reference position and the kind of coordinates.
    fn frame(&mut self, mut frame: Frame) -> Result<Frame, Error> {
        while let Some(word) = self.peek_word() {
            match word.to_ascii_uppercase().as_str() {
                "ICRS" | "FK5" | "J2000" | "UNKNOWNFRAME" => frame = Frame::Icrs,
                "FK4" | "B1950" => frame = Frame::Fk4,
                "GALACTIC" | "GALACTIC_II" => frame = Frame::Galactic,
                "ECLIPTIC" => frame = Frame::Ecliptic,
                "GEOCENTER" | "BARYCENTER" | "HELIOCENTER" | "TOPOCENTER" | "LSR" | "LSRK" | "LSRD"
                | "RELOCATABLE" | "UNKNOWNREFPOS" | "SPHERICAL2" => {}
                "FILLFACTOR" => {
                    self.pass(word.len());
                    self.number()?;
                    continue;
                }
                "CARTESIAN2" | "CARTESIAN3" | "SPHERICAL3" => {
                    return Err(Error::Unsupported("Cartesian coordinates"));
                }
                _ => break,
            }
            self.pass(word.len());
        }
        Ok(frame)
    }

    /// `unit deg` after the numbers.
    fn units(&mut self) -> Result<(), Error> {
        if self.peek_word().is_some_and(|word| word.eq_ignore_ascii_case("unit")) {
            self.pass(4);
            match self.peek_word() {
                Some(word) if word.eq_ignore_ascii_case("deg") => self.pass(3),
                _ => return Err(Error::Unsupported("a unit other than the degree")),
            }
        }
        Ok(())
    }

    /// The shapes of a union in parentheses.
    fn group(&mut self, frame: Frame, depth: usize, shapes: &mut Vec<Shape>) -> Result<(), Error> {
        if !self.take('(') {
            return Err(self.wrong("( is expected"));
        }
        let before = shapes.len();
        while !self.take(')') {
            if self.at_end() {
                return Err(self.wrong(") is expected"));
            }
            self.shape(frame, depth + 1, shapes)?;
        }
        if shapes.len() == before { Err(self.wrong("an empty union")) } else { Ok(()) }
    }

    /// What one shape leaves out.
    fn not(&mut self, frame: Frame, depth: usize, shapes: &mut Vec<Shape>) -> Result<(), Error> {
        let mut inner = Vec::new();
        if self.rest().starts_with('(') {
            self.group(frame, depth, &mut inner)?;
        } else {
            self.shape(frame, depth + 1, &mut inner)?;
        }
        let shape = match inner.pop().filter(|_| inner.is_empty()) {
            Some(Shape::Circle(circle)) if circle.radius() < 180.0 => Shape::Circle(circle.complement()),
            Some(Shape::Polygon(polygon)) => Shape::Polygon(polygon.complement()),
            _ => return Err(Error::Unsupported("the complement of anything but one circle or polygon")),
        };
        shapes.push(shape);
        Ok(())
    }
}

/// A shape of a frame in ICRS.
fn turned(shape: Shape, frame: Frame) -> Result<Shape, Error> {
    if frame == Frame::Icrs {
        return Ok(shape);
    }
    let moved = Transform::new(frame, Frame::Icrs).region(&Region::from(shape))?;
    moved.shapes().first().cloned().ok_or(Error::Unsupported("an empty region"))
}
