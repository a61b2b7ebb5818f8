//! Types and column metadata, as expressions carry them (ADQL 2.1 3).
//!
//! A [`Type`] is what an expression is computed with; a [`Field`] is what a result column says of itself
//! (VOTable 1.5 section 4.1: datatype, arraysize, xtype, unit, UCD, utype). The pair of `datatype` and `xtype`
//! of the standard is one `Type` here: a `char(*)` with the xtype `timestamp` is a [`Type::Timestamp`].

use std::fmt;
use std::sync::Arc;

/// What an expression or a column is, after `xtype` was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// The type of a bare `NULL`, which fits everywhere.
    Null,
    /// Truth, three-valued. VOTable `boolean`.
    Boolean,
    /// One bit. VOTable `bit`.
    Bit,
    /// 0 to 255. VOTable `unsignedByte`.
    UnsignedByte,
    /// 16 bits. ADQL `SMALLINT`.
    Short,
    /// 32 bits. ADQL `INTEGER`.
    Int,
    /// 64 bits. ADQL `BIGINT`.
    Long,
    /// IEEE 754 binary32. ADQL `REAL`.
    Float,
    /// IEEE 754 binary64. ADQL `DOUBLE PRECISION`.
    Double,
    /// Two binary32. VOTable `floatComplex`.
    FloatComplex,
    /// Two binary64. VOTable `doubleComplex`.
    DoubleComplex,
    /// Text. ADQL `CHAR`, `VARCHAR`, `CLOB`; VOTable `char` and `unicodeChar`.
    Text,
    /// An instant in UTC or the table's own scale, to the microsecond. DALI `timestamp`.
    Timestamp,
    /// A position on the sphere. DALI `point`.
    Point,
    /// A cap of the sphere. DALI `circle`.
    Circle,
    /// A polygon of great-circle arcs. DALI `polygon`.
    Polygon,
    /// Any region of the sphere. DALI `shape`, ADQL 2.0 `adql:REGION`.
    Region,
    /// Several of one element, in any number of dimensions.
    Array(Element),
}

/// What an array is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Element {
    /// VOTable `boolean`.
    Boolean,
    /// VOTable `bit`.
    Bit,
    /// VOTable `unsignedByte`; an array of them is ADQL's `BLOB`.
    UnsignedByte,
    /// VOTable `short`.
    Short,
    /// VOTable `int`.
    Int,
    /// VOTable `long`.
    Long,
    /// VOTable `float`.
    Float,
    /// VOTable `double`.
    Double,
    /// VOTable `floatComplex`.
    FloatComplex,
    /// VOTable `doubleComplex`.
    DoubleComplex,
    /// Strings of one length: `char` with two or more dimensions.
    Text,
}

impl Type {
    /// Whether values are whole numbers.
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::UnsignedByte | Self::Short | Self::Int | Self::Long)
    }

    /// Whether values are real numbers, whole or not.
    pub const fn is_numeric(self) -> bool {
        self.is_integer() || matches!(self, Self::Float | Self::Double)
    }

    /// Whether values are regions or positions of the sphere.
    pub const fn is_geometry(self) -> bool {
        matches!(self, Self::Point | Self::Circle | Self::Polygon | Self::Region)
    }

    /// Whether CAST makes `to` of values (ADQL 2.1 4.7.1): numbers of numbers, truth values and texts; texts of those
    /// and of timestamps; timestamps, truth values and geometries of texts.
    pub fn can_cast_to(self, to: Self) -> bool {
        if self == to || self == Self::Null {
            return true;
        }
        let simple = self.is_numeric() || matches!(self, Self::Boolean | Self::Bit | Self::Text);
        match to {
            Self::Text => simple || self == Self::Timestamp,
            Self::Timestamp | Self::Point | Self::Circle | Self::Polygon | Self::Region => self == Self::Text,
            Self::Boolean => simple,
            _ => to.is_numeric() && simple,
        }
    }

    /// Whether values have an order: what `<`, ORDER BY and MIN accept.
    pub const fn is_ordered(self) -> bool {
        self.is_numeric()
            || matches!(self, Self::Boolean | Self::Bit | Self::Text | Self::Timestamp | Self::Null)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "NULL",
            Self::Boolean => "BOOLEAN",
            Self::Bit => "BIT",
            Self::UnsignedByte => "UNSIGNEDBYTE",
            Self::Short => "SMALLINT",
            Self::Int => "INTEGER",
            Self::Long => "BIGINT",
            Self::Float => "REAL",
            Self::Double => "DOUBLE PRECISION",
            Self::FloatComplex => "FLOATCOMPLEX",
            Self::DoubleComplex => "DOUBLECOMPLEX",
            Self::Text => "VARCHAR",
            Self::Timestamp => "TIMESTAMP",
            Self::Point => "POINT",
            Self::Circle => "CIRCLE",
            Self::Polygon => "POLYGON",
            Self::Region => "REGION",
            Self::Array(_) => "ARRAY",
        })
    }
}

/// The length of a value: VOTable's `arraysize`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Size {
    /// One value; for text, one character (VOTable 2.2).
    #[default]
    One,
    /// Any length: `*`, or `n*` with the most that occurs.
    Variable(Option<u32>),
    /// Exactly so many.
    Fixed(u32),
    /// Several dimensions, first varying fastest; the last may be variable (`None`): `3x4x*`.
    Shape(Box<[u32]>, Option<u32>),
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One => Ok(()),
            Self::Variable(None) => f.write_str("*"),
            Self::Variable(Some(most)) => write!(f, "{most}*"),
            Self::Fixed(count) => write!(f, "{count}"),
            Self::Shape(fixed, last) => {
                for size in fixed {
                    write!(f, "{size}x")?;
                }
                match last {
                    Some(size) => write!(f, "{size}"),
                    None => f.write_str("*"),
                }
            }
        }
    }
}

/// A column of a table or of a result, with all that it says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name as declared, case kept, without quotes.
    pub name: Arc<str>,
    /// What it is computed with.
    pub ty: Type,
    /// Its length, for text and arrays; for geometries what their DALI form has.
    pub size: Size,
    /// Whether text is VOTable's `unicodeChar`; otherwise `char` (UTF-8 since VOTable 1.6).
    pub unicode: bool,
    /// The xtype as declared (`timestamp`, `point`, `adql:REGION`, `moc`, `interval` ...), where there is one.
    pub xtype: Option<Arc<str>>,
    /// The unit in VOUnits.
    pub unit: Option<Arc<str>>,
    /// The UCD 1+.
    pub ucd: Option<Arc<str>>,
    /// The data model's role.
    pub utype: Option<Arc<str>>,
    /// What it means, for people.
    pub description: Option<Arc<str>>,
}

impl Field {
    /// A column of this name and type that says nothing else.
    pub fn new(name: impl Into<Arc<str>>, ty: Type) -> Self {
        let (size, xtype): (Size, Option<&str>) = match ty {
            Type::Text => (Size::Variable(None), None),
            Type::Array(_) => (Size::Variable(None), None),
            Type::Timestamp => (Size::Variable(None), Some("timestamp")),
            Type::Point => (Size::Fixed(2), Some("point")),
            Type::Circle => (Size::Fixed(3), Some("circle")),
            Type::Polygon => (Size::Variable(None), Some("polygon")),
            Type::Region => (Size::Variable(None), Some("adql:REGION")),
            _ => (Size::One, None),
        };
        Self {
            name: name.into(),
            ty,
            size,
            unicode: false,
            xtype: xtype.map(Arc::from),
            unit: None,
            ucd: None,
            utype: None,
            description: None,
        }
    }
}
