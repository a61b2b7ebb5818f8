//! One cell: its centre, corners, size and kin.

use super::{ORDER_MAX, cell_count, plane};
use crate::sphere::{Vec3, sin_cos};

/// The kinds of cells by their elongation.
///
/// The arc from a centre to a place of the cell is at most the way straight through the plane: its length
/// there times the largest speed on the sphere. Between the parallels `asin(2/3)` the speed is at most `2/3 /
/// cos(lat)` northward and `pi/4 cos(lat)` eastward. Beyond them it is, with `q = 6 - s^2` from 5 to 6 and
/// `p` the distance from the middle of the quarter, 0 to 1, at most `sqrt(4/q + (pi p / 12)^2 q)` northward,
/// and less eastward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Between the parallels: 0.8945.
    Belt,
    /// In the middle half of a polar quarter, `p` at most 1/2: 0.9413.
    Middle,
    /// At the meridians where quarters meet: 1.0690.
    Rim,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Belt, Self::Middle, Self::Rim];

    /// An upper bound, in radians, of the arc from the centre of such a cell to anything in it.
    pub(super) fn radius(self, order: u8) -> f64 {
        let speed = match self {
            Self::Belt => 0.8945,
            Self::Middle => 0.9413,
            Self::Rim => 1.0691,
        };
        speed * size(order)
    }
}

/// A cell of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    order: u8,
    face: u8,
    x: u32,
    y: u32,
}

impl Cell {
    /// The cell with a nested number; `None` if the order has no such cell.
    pub fn new(order: u8, number: u64) -> Option<Self> {
        if order > ORDER_MAX || number >= cell_count(order) {
            return None;
        }
        let bits = 2 * u32::from(order);
        let within = number & ((1 << bits) - 1);
        let face = (number >> bits) as u8;
        Some(Self { order, face, x: plane::gather(within), y: plane::gather(within >> 1) })
    }

    /// The cell at a place of a base cell; `x` and `y` are below `2^order`.
    pub(super) fn at(order: u8, face: u8, x: u32, y: u32) -> Self {
        Self { order, face, x, y }
    }

    /// Its order.
    pub fn order(&self) -> u8 {
        self.order
    }

    /// Base cell and coordinates in it.
    pub(super) fn place(&self) -> (u8, u32, u32) {
        (self.face, self.x, self.y)
    }

    /// Its nested number.
    pub fn number(&self) -> u64 {
        u64::from(self.face) << (2 * u32::from(self.order)) | plane::part(self.x) | plane::part(self.y) << 1
    }

    /// The first and the last order-29 cell in it.
    pub fn range29(&self) -> (u64, u64) {
        let shift = 2 * u32::from(ORDER_MAX - self.order);
        let first = self.number() << shift;
        (first, first + ((1 << shift) - 1))
    }

    /// Its four children in order of number; `None` at order 29.
    pub fn children(&self) -> Option<[Self; 4]> {
        if self.order == ORDER_MAX {
            return None;
        }
        let (order, face, x, y) = (self.order + 1, self.face, 2 * self.x, 2 * self.y);
        Some([(0, 0), (1, 0), (0, 1), (1, 1)].map(|(dx, dy)| Self { order, face, x: x + dx, y: y + dy }))
    }

    /// Its centre.
    #[inline]
    pub fn center(&self) -> Vec3 {
        self.place_at(0.5, 0.5)
    }

    /// Its corners: south, east, north, west.
    pub fn corners(&self) -> [Vec3; 4] {
        [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)].map(|(x, y)| self.place_at(x, y))
    }

    /// A place in it: from the southern corner so far to the north-east and to the north-west, 0 to 1.
    #[inline]
    pub fn place_at(&self, x: f64, y: f64) -> Vec3 {
        let size = size(self.order);
        let (turn, sine, cosine) =
            plane::unproject(self.face, (f64::from(self.x) + x) * size, (f64::from(self.y) + y) * size);
        let (sin_lon, cos_lon) = sin_cos(turn * 90.0);
        Vec3 { x: cosine * cos_lon, y: cosine * sin_lon, z: sine }
    }

    /// An upper bound, in radians, of the arc from its centre to anything in it.
    pub fn radius(&self) -> f64 {
        self.kind().radius(self.order)
    }

    pub(super) fn kind(&self) -> Kind {
        let side = 1_u32 << self.order;
        // Cells from the pole, in steps of half a cell.
        let away = match self.face / 4 {
            0 => 2 * (side - 1) - self.x - self.y,
            1 => return Kind::Belt,
            _ => self.x + self.y,
        };
        if away >= side {
            Kind::Belt
        } else if 2 * (self.x.abs_diff(self.y) + 1) <= away + 1 {
            Kind::Middle
        } else {
            Kind::Rim
        }
    }
}

/// The side of a cell where that of a base cell is 1.
#[inline]
fn size(order: u8) -> f64 {
    1.0 / (1_u64 << order) as f64
}
