//! Unit vectors: where the work on the sphere is done.

use std::ops::{Add, Mul, Neg, Sub};

use super::angle;

/// A vector in space; a position of the sphere where its length is 1. `x` points to (0, 0), `z` to the north.
///
/// A coordinate is off by at most about 2e-16, a twentieth of a nano-arcsecond on the sky.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vec3 {
    /// Towards longitude 0, latitude 0.
    pub x: f64,
    /// Towards longitude 90, latitude 0.
    pub y: f64,
    /// Towards latitude 90.
    pub z: f64,
}

impl Vec3 {
    /// The position at a longitude and a latitude in degrees. Any longitude is accepted; a NaN and a latitude
    /// beyond a pole give NaN, which no region contains.
    #[inline]
    pub fn from_degrees(lon: f64, lat: f64) -> Self {
        let lat = if lat.abs() <= 90.0 { lat } else { f64::NAN };
        let ((sin_lon, cos_lon), (sin_lat, cos_lat)) = (angle::sin_cos(lon), angle::sin_cos(lat));
        Self { x: cos_lat * cos_lon, y: cos_lat * sin_lon, z: sin_lat }
    }

    /// Longitude (0 to 360) and latitude in degrees.
    pub fn to_degrees(self) -> (f64, f64) {
        let across = self.x.hypot(self.y);
        (angle::wrap_longitude(self.y.atan2(self.x).to_degrees()), self.z.atan2(across).to_degrees())
    }

    /// The scalar product.
    #[inline]
    pub fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    /// The vector product.
    #[inline]
    pub fn cross(self, other: Self) -> Self {
        Self {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }

    /// The vector product of two positions, exact also where they nearly coincide or are nearly opposite.
    #[inline]
    pub fn robust_cross(self, other: Self) -> Self {
        (self + other).cross(other - self) * 0.5
    }

    /// The square of the length.
    #[inline]
    pub fn norm_squared(self) -> f64 {
        self.dot(self)
    }

    /// The length.
    #[inline]
    pub fn norm(self) -> f64 {
        self.norm_squared().sqrt()
    }

    /// The same direction with length 1; `None` for the null vector and for NaN.
    pub fn normalized(self) -> Option<Self> {
        // Scaled first, so that tiny vectors do not lose their squares.
        let largest = self.x.abs().max(self.y.abs()).max(self.z.abs());
        if !(largest > 0.0 && largest.is_finite()) {
            return None;
        }
        let scaled = self * (1.0 / largest);
        let result = scaled * (1.0 / scaled.norm());
        result.is_finite().then_some(result)
    }

    /// The square of the chord to another position.
    #[inline]
    pub fn chord_squared(self, other: Self) -> f64 {
        (self - other).norm_squared()
    }

    /// The arc to another position in radians, exact at every size.
    pub fn angle(self, other: Self) -> f64 {
        2.0 * (self - other).norm().atan2((self + other).norm())
    }

    /// Some position at a right angle.
    pub fn perpendicular(self) -> Self {
        let axis = if self.z.abs() < 0.7 {
            Self { x: 0.0, y: 0.0, z: 1.0 }
        } else {
            Self { x: 1.0, y: 0.0, z: 0.0 }
        };
        axis.cross(self).normalized().unwrap_or(axis)
    }

    /// Whether no coordinate is NaN or infinite.
    #[inline]
    pub fn is_finite(self) -> bool {
        self.x.is_finite() && self.y.is_finite() && self.z.is_finite()
    }
}

impl Add for Vec3 {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self { x: self.x + other.x, y: self.y + other.y, z: self.z + other.z }
    }
}

impl Sub for Vec3 {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self { x: self.x - other.x, y: self.y - other.y, z: self.z - other.z }
    }
}

impl Mul<f64> for Vec3 {
    type Output = Self;
    #[inline]
    fn mul(self, factor: f64) -> Self {
        Self { x: self.x * factor, y: self.y * factor, z: self.z * factor }
    }
}

impl Neg for Vec3 {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self { x: -self.x, y: -self.y, z: -self.z }
    }
}
