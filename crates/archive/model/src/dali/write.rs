//! Writing: numbers with blanks between, and labels before them.

use crate::sphere::{Circle, Point, Polygon, Region, Shape};

/// Appends numbers with blanks between.
pub fn write_numbers(numbers: &[f64], out: &mut Vec<u8>) {
    for (index, number) in numbers.iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        crate::cell::double(*number, out);
    }
}

/// Appends `lon lat` (DALI 1.2 3.7).
pub fn write_point(point: &Point, out: &mut Vec<u8>) {
    write_numbers(&[point.lon(), point.lat()], out);
}

/// Appends `lon lat radius` (DALI 1.2 3.8).
pub fn write_circle(circle: &Circle, out: &mut Vec<u8>) {
    write_numbers(&[circle.center().lon(), circle.center().lat(), circle.radius()], out);
}

/// Appends the vertices as they were given (DALI 1.2 3.10). That a polygon is the larger side cannot be said.
pub fn write_polygon(polygon: &Polygon, out: &mut Vec<u8>) {
    write_numbers(polygon.coordinates(), out);
}

/// Appends `low high` (DALI 1.2 3.4), `-Inf` and `+Inf` without a bound.
pub fn write_interval((low, high): (f64, f64), out: &mut Vec<u8>) {
    let write = |bound: f64, out: &mut Vec<u8>| match bound {
        f64::INFINITY => out.extend_from_slice(b"+Inf"),
        f64::NEG_INFINITY => out.extend_from_slice(b"-Inf"),
        bound => crate::cell::double(bound, out),
    };
    write(low, out);
    out.push(b' ');
    write(high, out);
}

/// Appends a shape, or several one after another (DALI 1.2 3.12, 3.13). Where a polygon's larger side is
/// meant, which DALI has no words for, STC-S.
pub fn write_region(region: &Region, out: &mut Vec<u8>) {
    let larger = |shape: &Shape| matches!(shape, Shape::Polygon(polygon) if polygon.is_complement());
    if region.shapes().iter().any(larger) {
        return write_stc(region, out);
    }
    for (index, shape) in region.shapes().iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(match shape {
            Shape::Circle(_) => b"circle ",
            Shape::Polygon(_) => b"polygon ",
            Shape::Range(_) => b"range ",
        });
        write_shape(shape, out);
    }
}

/// Appends STC-S in ICRS, as `s_region` columns hold it (TAP 1.0 section 6).
pub fn write_stc(region: &Region, out: &mut Vec<u8>) {
    let one = region.shapes().len() == 1;
    if !one {
        out.extend_from_slice(b"Union ICRS (");
    }
    for (index, shape) in region.shapes().iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        let label: (&[u8], &[u8]) = match shape {
            Shape::Circle(circle) if circle.radius() == 0.0 => (b"Position", b""),
            Shape::Circle(_) => (b"Circle", b""),
            Shape::Polygon(polygon) if polygon.is_complement() => (b"Not (Polygon", b")"),
            Shape::Polygon(_) => (b"Polygon", b""),
            Shape::Range(_) => (b"PositionInterval", b""),
        };
        out.extend_from_slice(label.0);
        out.extend_from_slice(if one { b" ICRS " } else { b" " });
        match shape {
            Shape::Circle(circle) if circle.radius() == 0.0 => write_point(&circle.center(), out),
            // Lower corner and upper corner.
            Shape::Range(range) => {
                let ((lon1, lon2), (lat1, lat2)) = (range.lon(), range.lat());
                write_numbers(&[lon1, lat1, lon2, lat2], out);
            }
            shape => write_shape(shape, out),
        }
        out.extend_from_slice(label.1);
    }
    if !one {
        out.push(b')');
    }
}

fn write_shape(shape: &Shape, out: &mut Vec<u8>) {
    match shape {
        Shape::Circle(circle) => write_circle(circle, out),
        Shape::Polygon(polygon) => write_polygon(polygon, out),
        Shape::Range(range) => {
            let ((lon1, lon2), (lat1, lat2)) = (range.lon(), range.lat());
            write_numbers(&[lon1, lon2, lat1, lat2], out);
        }
    }
}
