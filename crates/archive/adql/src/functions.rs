//! The functions that queries may call: ADQL's own and the user-defined ones that we have.
//!
//! The two enums are what the tree says; [`table`] is what a query may write.

pub mod table;

/// The reference frames between which `ivo_geom_transform` turns (IVOA vocabulary `refframe`, whose words heed case):
/// FK4 at B1950, FK5 and ECLIPTIC at J2000.
pub const FRAMES: [&str; 5] = ["ICRS", "FK5", "FK4", "GALACTIC", "ECLIPTIC"];

/// A scalar function. Arguments have the types that `resolve` gave them: see each variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    // ---- mathematics (ADQL 2.1 2.3): Double in, Double out, unless said otherwise
    /// Any number in and out.
    Abs,
    /// Double.
    Ceiling,
    /// Double.
    Degrees,
    /// Double.
    Exp,
    /// Double.
    Floor,
    /// Natural logarithm.
    Log,
    /// Decimal logarithm.
    Log10,
    /// Two numbers of one type; the sign is the dividend's.
    Mod,
    /// No argument.
    Pi,
    /// Two.
    Power,
    /// Double.
    Radians,
    /// None, or one Long seed. Differs from row to row.
    Rand,
    /// One Double, or with a Long number of digits; halves away from zero.
    Round,
    /// Double.
    Sqrt,
    /// One Double, or with a Long number of digits; towards zero.
    Truncate,
    /// Radians.
    Sin,
    /// Radians.
    Cos,
    /// Radians.
    Tan,
    /// Radians.
    Cot,
    /// Double.
    Asin,
    /// Double.
    Acos,
    /// Double.
    Atan,
    /// Two.
    Atan2,
    // ---- text
    /// Text to Text.
    Lower,
    /// Text to Text.
    Upper,
    /// (text Text, count Long) to Text: so many characters from the front. What `CAST(... AS CHAR(n))` cuts with.
    Left,
    // ---- conditions
    /// The first that is not NULL; all of the result's type.
    Coalesce,
    /// NULL if both are equal, else the first.
    NullIf,
    /// The greatest, NULLs passed over.
    Greatest,
    /// The least, NULLs passed over.
    Least,
    // ---- geometry (ADQL 2.1 4.2); a coordinate system argument was dropped by the resolver
    /// Two Doubles in degrees to Point.
    Point,
    /// Three Doubles in degrees to Circle; a centre Point was taken apart.
    Circle,
    /// Centre and sizes, four Doubles, to Polygon.
    Box,
    /// An even number (six or more) of Doubles to Polygon.
    Polygon,
    /// Text to Region, as STC-S or DALI text.
    Region,
    /// Geometry to Point.
    Centroid,
    /// Geometry to Double, square degrees.
    Area,
    /// Point to Double.
    Coord1,
    /// Point to Double.
    Coord2,
    /// Geometry to Text.
    CoordSys,
    /// Two geometries to Boolean: the first within the second.
    Contains,
    /// Two geometries to Boolean.
    Intersects,
    /// Four Doubles (lon1, lat1, lon2, lat2) to Double, degrees. Two Points were taken apart where they were
    /// constructors; otherwise COORD1 and COORD2 stand here.
    Distance,
    // ---- user-defined; the name in the catalogue of user-defined functions (IVOA Endorsed Note)
    /// (order Long, lon Double, lat Double) to Long, nested.
    HealpixIndex,
    /// (order Long, index Long) to Point.
    HealpixCenter,
    /// (order Long, source_id Long) to Long: the cell that a Gaia source identifier stands for, nested, order
    /// 0 to 12.
    GaiaHealpixIndex,
    /// (ra, dec, parallax, pmra, pmdec, rv, from, to: Doubles) to Array(Double): six parameters at `to`. In degrees,
    /// mas, mas/yr, km/s and Julian years. NULL for the third to sixth is 0; for the others it is an error.
    EpochPropagate,
    /// The same arguments to Point: the position alone.
    EpochPropagatePosition,
    /// (from Text, to Text, geometry) to the geometry. Both Texts are literals among
    /// [`FRAMES`]: the resolver saw to it.
    GeometryTransform,
    /// Timestamp to Double, Julian date.
    ToJd,
    /// Timestamp to Double, modified Julian date.
    ToMjd,
    /// (haystack Text, needle Text) to Boolean: every word of the needle is one of the haystack's, ignoring case.
    HasWord,
    /// (hash list Text, item Text) to Boolean, ignoring case; an item with a `#` is in no list.
    HashListHas,
    /// (mean Double, sigma Double) to Double. Differs from row to row.
    NormalRandom,
    /// Two intervals as four Doubles (l1, h1, l2, h2) to Boolean; ends that meet overlap, an interval whose low end
    /// is above its high one overlaps with nothing.
    IntervalOverlaps,
    /// Text (`h:m:s`, `hhmmss`, `hHmMsS`) to Double, degrees; NULL for what is not one.
    HmsToDegrees,
    /// Text (`d:m:s`, `ddmmss`, `dDmMsS`, with a sign) to Double, degrees; NULL for what is not one.
    DmsToDegrees,
    /// (pattern Text, text Text) to Boolean: a regular expression, bounded.
    Match,
}

/// An aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aggregator {
    /// COUNT(*) or COUNT(x), Long.
    Count,
    /// Long of Longs, Double of Doubles.
    Sum,
    /// Double.
    Avg,
    /// Of any ordered type.
    Min,
    /// Of any ordered type.
    Max,
    /// Sample standard deviation, Double.
    StdDev,
    /// Sample variance, Double.
    Variance,
    /// Median, Double.
    Median,
    /// (text Text, separator Text) to Text, in the order of the rows; NULLs leave no trace.
    StringAgg,
    /// (value, low, high: Doubles, count Long) to Array(Long): two more bins than `count`, for what lies outside. A
    /// NULL counts as below.
    Histogram,
}
