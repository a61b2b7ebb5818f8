//! One table of everything that can be called: names, arguments, results, and what the results measure.
//!
//! The resolver reads calls by it and the capabilities document is written from it ([`crate::udf`]), so what is
//! declared is what is supported. A few functions take more forms than a table can say (a leading coordinate system,
//! a point for two numbers); the resolver has code for those and the table only their names.

use super::{Aggregator, Function};
use crate::types::{Element, Type};

/// A function or an aggregate.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Its names, in any case; the first is the one to recommend.
    pub names: &'static [&'static str],
    /// What a call of it is.
    pub callee: Callee,
    /// The ways to call it.
    pub forms: &'static [Form],
    /// What its value measures.
    pub measure: Measure,
    /// Where it is declared.
    pub group: Group,
    /// What it does, for people; empty where the standard says it.
    pub description: &'static str,
}

/// What a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A scalar function.
    Function(Function),
    /// An aggregate.
    Aggregate(Aggregator),
    /// What the resolver turns into something else.
    Rewrite(Rewrite),
}

/// A call that is no function of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// ILIKE.
    NoCaseMatch,
    /// A product with a factor (ADQL 2.1 4.9.1).
    InUnit,
    /// A product with or a quotient of a factor.
    SpectralConvert,
}

/// One way to call a function.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// What it takes.
    pub parameters: &'static [Parameter],
    /// Whether the last parameter may be given again and again.
    pub variadic: bool,
    /// What comes out.
    pub result: Yields,
}

/// An argument as a form names it: a regular identifier that is no reserved word.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What fits.
    pub wants: Wants,
}

/// What an argument must be, or is cast to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// A number, cast to Double.
    Double,
    /// A whole number, cast to Long.
    Long,
    /// A number as it is.
    Number,
    /// A text.
    Text,
    /// A text that stands in the query.
    TextLiteral,
    /// An instant; a text is cast to one.
    Timestamp,
    /// A position.
    Point,
    /// Any geometry; a text is read as one.
    Geometry,
    /// Anything, as long as all such arguments have one type.
    Any,
}

/// The type of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// Always this one.
    Type(Type),
    /// Whether something is so: Boolean in the tree, and to the world an INTEGER of 1 or 0.
    Truth,
    /// That of the arguments that are [`Wants::Any`], [`Wants::Number`] or [`Wants::Geometry`].
    Arguments,
}

/// The unit and UCD of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Neither.
    Nothing,
    /// Those of the first argument.
    Kept,
    /// Those of the argument, unless it only names or counts: a sum of names is none.
    Total,
    /// Those that the arguments have in common.
    Common,
    /// The root of the argument's unit.
    Root,
    /// The first argument's unit, to the power of the second.
    Power,
    /// The square of the argument's unit.
    Square,
    /// Always these; an empty text is none.
    Fixed(&'static str, &'static str),
    /// The argument's unit and its UCD with this word.
    Statistic(&'static str),
}

/// Where TAPRegExt puts a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// ADQL 2.1 2.3: always there, not declared.
    Core,
    /// `features-adqlgeo`.
    Geometry,
    /// `features-adql-string`.
    String,
    /// `features-adql-conditional`.
    Conditional,
    /// `features-adql-unit`.
    Unit,
    /// `features-udf`.
    UserDefined,
    /// Ours, and in no group that the standard has.
    Undeclared,
}

impl Definition {
    /// What a name, in any case, stands for.
    pub fn find(name: &str) -> Option<&'static Self> {
        DEFINITIONS.iter().find(|it| it.names.iter().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// Every name of every function, for suggestions after a mistake.
    pub fn all_names() -> impl Iterator<Item = &'static str> {
        DEFINITIONS.iter().flat_map(|it| it.names.iter().copied())
    }
}

const fn form(parameters: &'static [Parameter], result: Yields) -> Form {
    Form { parameters, variadic: false, result }
}

const fn variadic(parameters: &'static [Parameter], result: Yields) -> Form {
    Form { parameters, variadic: true, result }
}

const fn arg(name: &'static str, wants: Wants) -> Parameter {
    Parameter { name, wants }
}

const DOUBLE: Yields = Yields::Type(Type::Double);
const LONG: Yields = Yields::Type(Type::Long);
const TEXT: Yields = Yields::Type(Type::Text);
const POINT: Yields = Yields::Type(Type::Point);
const X: Parameter = arg("x", Wants::Double);
const Y: Parameter = arg("y", Wants::Double);
const DIGITS: Parameter = arg("digits", Wants::Long);
const SIX_PARAMETERS: &[Parameter] = &[
    arg("ra", Wants::Double),
    arg("dec", Wants::Double),
    arg("parallax", Wants::Double),
    arg("pmra", Wants::Double),
    arg("pmdec", Wants::Double),
    arg("radial_velocity", Wants::Double),
    arg("ref_epoch", Wants::Double),
    arg("out_epoch", Wants::Double),
];

const fn core(names: &'static [&'static str], function: Function, forms: &'static [Form]) -> Definition {
    Definition {
        names,
        callee: Callee::Function(function),
        forms,
        measure: Measure::Nothing,
        group: Group::Core,
        description: "",
    }
}

const fn measures(definition: Definition, measure: Measure) -> Definition {
    Definition { measure, ..definition }
}

const fn within(definition: Definition, group: Group) -> Definition {
    Definition { group, ..definition }
}

const fn geometry(names: &'static [&'static str], function: Function, forms: &'static [Form]) -> Definition {
    within(core(names, function, forms), Group::Geometry)
}

const fn user(
    names: &'static [&'static str],
    function: Function,
    forms: &'static [Form],
    description: &'static str,
) -> Definition {
    Definition { description, ..within(core(names, function, forms), Group::UserDefined) }
}

const fn aggregate(
    names: &'static [&'static str],
    aggregator: Aggregator,
    forms: &'static [Form],
    measure: Measure,
) -> Definition {
    Definition {
        names,
        callee: Callee::Aggregate(aggregator),
        forms,
        measure,
        group: Group::Core,
        description: "",
    }
}

const fn user_aggregate(definition: Definition, description: &'static str) -> Definition {
    Definition { group: Group::UserDefined, description, ..definition }
}

const fn rewrite(
    names: &'static [&'static str],
    rewrite: Rewrite,
    forms: &'static [Form],
    description: &'static str,
) -> Definition {
    Definition {
        names,
        callee: Callee::Rewrite(rewrite),
        forms,
        measure: Measure::Nothing,
        group: Group::UserDefined,
        description,
    }
}

/// One Double in, one out.
const UNARY: &[Form] = &[form(&[X], DOUBLE)];
/// A Double, and perhaps a number of digits.
const ROUNDING: &[Form] = &[form(&[X], DOUBLE), form(&[X, DIGITS], DOUBLE)];
const BINARY: &[Form] = &[form(&[X, Y], DOUBLE)];
const FOLD: &[Form] = &[form(&[arg("txt", Wants::Text)], TEXT)];
const ANY: &[Form] = &[variadic(&[arg("x", Wants::Any)], Yields::Arguments)];
const OF_GEOMETRY: Parameter = arg("geo", Wants::Geometry);
const OF_POINT: &[Form] = &[form(&[arg("pt", Wants::Point)], DOUBLE)];
const TWO_GEOMETRIES: &[Form] = &[form(&[OF_GEOMETRY, OF_GEOMETRY], Yields::Truth)];

/// Everything that can be called.
pub static DEFINITIONS: &[Definition] = &[
    // ADQL 2.1 2.3
    measures(
        core(&["ABS"], Function::Abs, &[form(&[arg("x", Wants::Number)], Yields::Arguments)]),
        Measure::Kept,
    ),
    measures(core(&["CEILING"], Function::Ceiling, UNARY), Measure::Kept),
    measures(core(&["DEGREES"], Function::Degrees, UNARY), Measure::Fixed("deg", "")),
    core(&["EXP"], Function::Exp, UNARY),
    measures(core(&["FLOOR"], Function::Floor, UNARY), Measure::Kept),
    core(&["LOG"], Function::Log, UNARY),
    core(&["LOG10"], Function::Log10, UNARY),
    measures(
        core(
            &["MOD"],
            Function::Mod,
            &[form(&[arg("x", Wants::Number), arg("y", Wants::Number)], Yields::Arguments)],
        ),
        Measure::Kept,
    ),
    core(&["PI"], Function::Pi, &[form(&[], DOUBLE)]),
    measures(core(&["POWER"], Function::Power, BINARY), Measure::Power),
    measures(core(&["RADIANS"], Function::Radians, UNARY), Measure::Fixed("rad", "")),
    core(&["RAND"], Function::Rand, &[form(&[], DOUBLE), form(&[arg("seed", Wants::Long)], DOUBLE)]),
    measures(core(&["ROUND"], Function::Round, ROUNDING), Measure::Kept),
    measures(core(&["SQRT"], Function::Sqrt, UNARY), Measure::Root),
    measures(core(&["TRUNCATE"], Function::Truncate, ROUNDING), Measure::Kept),
    core(&["SIN"], Function::Sin, UNARY),
    core(&["COS"], Function::Cos, UNARY),
    core(&["TAN"], Function::Tan, UNARY),
    core(&["COT"], Function::Cot, UNARY),
    measures(core(&["ASIN"], Function::Asin, UNARY), Measure::Fixed("rad", "")),
    measures(core(&["ACOS"], Function::Acos, UNARY), Measure::Fixed("rad", "")),
    measures(core(&["ATAN"], Function::Atan, UNARY), Measure::Fixed("rad", "")),
    measures(core(&["ATAN2"], Function::Atan2, BINARY), Measure::Fixed("rad", "")),
    // ADQL 2.1 2.2: set functions
    aggregate(
        &["COUNT"],
        Aggregator::Count,
        &[form(&[arg("x", Wants::Any)], LONG)],
        Measure::Fixed("", "meta.number"),
    ),
    aggregate(
        &["SUM"],
        Aggregator::Sum,
        &[form(&[arg("x", Wants::Number)], Yields::Arguments)],
        Measure::Total,
    ),
    aggregate(&["AVG"], Aggregator::Avg, UNARY, Measure::Statistic("stat.mean")),
    aggregate(
        &["MIN"],
        Aggregator::Min,
        &[form(&[arg("x", Wants::Any)], Yields::Arguments)],
        Measure::Statistic("stat.min"),
    ),
    aggregate(
        &["MAX"],
        Aggregator::Max,
        &[form(&[arg("x", Wants::Any)], Yields::Arguments)],
        Measure::Statistic("stat.max"),
    ),
    // ADQL 2.1 4.4
    within(measures(core(&["LOWER"], Function::Lower, FOLD), Measure::Kept), Group::String),
    within(measures(core(&["UPPER"], Function::Upper, FOLD), Measure::Kept), Group::String),
    // ADQL 2.1 4.8
    within(measures(core(&["COALESCE"], Function::Coalesce, ANY), Measure::Common), Group::Conditional),
    within(
        measures(
            core(
                &["NULLIF"],
                Function::NullIf,
                &[form(&[arg("x", Wants::Any), arg("y", Wants::Any)], Yields::Arguments)],
            ),
            Measure::Kept,
        ),
        Group::Undeclared,
    ),
    within(measures(core(&["GREATEST"], Function::Greatest, ANY), Measure::Common), Group::Undeclared),
    within(measures(core(&["LEAST"], Function::Least, ANY), Measure::Common), Group::Undeclared),
    // ADQL 2.1 4.9
    Definition {
        group: Group::Unit,
        ..rewrite(
            &["IN_UNIT"],
            Rewrite::InUnit,
            &[form(&[X, arg("unit_text", Wants::TextLiteral)], DOUBLE)],
            "",
        )
    },
    // ADQL 2.1 4.2; the constructors' arguments are the resolver's business.
    measures(geometry(&["POINT"], Function::Point, &[]), Measure::Fixed("deg", "")),
    measures(geometry(&["CIRCLE"], Function::Circle, &[]), Measure::Fixed("deg", "")),
    measures(geometry(&["BOX"], Function::Box, &[]), Measure::Fixed("deg", "")),
    measures(geometry(&["POLYGON"], Function::Polygon, &[]), Measure::Fixed("deg", "")),
    geometry(&["REGION"], Function::Region, &[form(&[arg("txt", Wants::Text)], Yields::Type(Type::Region))]),
    measures(
        geometry(&["CENTROID"], Function::Centroid, &[form(&[OF_GEOMETRY], POINT)]),
        Measure::Fixed("deg", ""),
    ),
    measures(
        geometry(&["AREA"], Function::Area, &[form(&[OF_GEOMETRY], DOUBLE)]),
        Measure::Fixed("deg**2", "phys.angArea"),
    ),
    measures(geometry(&["COORD1"], Function::Coord1, OF_POINT), Measure::Fixed("deg", "")),
    measures(geometry(&["COORD2"], Function::Coord2, OF_POINT), Measure::Fixed("deg", "")),
    geometry(&["COORDSYS"], Function::CoordSys, &[form(&[OF_GEOMETRY], TEXT)]),
    geometry(&["CONTAINS"], Function::Contains, TWO_GEOMETRIES),
    geometry(&["INTERSECTS"], Function::Intersects, TWO_GEOMETRIES),
    measures(geometry(&["DISTANCE"], Function::Distance, &[]), Measure::Fixed("deg", "pos.angDistance")),
    // The catalogue of user-defined functions (IVOA Endorsed Note 1.1 and its draft 1.2), and others' names for them
    measures(
        user(
            &["ivo_healpix_index", "gavo_healpix_index"],
            Function::HealpixIndex,
            &[
                form(
                    &[arg("hpx_order", Wants::Long), arg("lon", Wants::Double), arg("lat", Wants::Double)],
                    LONG,
                ),
                form(&[arg("hpx_order", Wants::Long), arg("pt", Wants::Point)], LONG),
            ],
            "The index of the HEALPix cell of this order, in the NESTED scheme, that holds a position in degrees.",
        ),
        Measure::Fixed("", "pos.healpix"),
    ),
    measures(
        user(
            &["ivo_healpix_center", "gavo_healpix_center"],
            Function::HealpixCenter,
            &[form(&[arg("hpx_order", Wants::Long), arg("hpx_index", Wants::Long)], POINT)],
            "The centre of the HEALPix cell with this order and index in the NESTED scheme.",
        ),
        Measure::Fixed("deg", ""),
    ),
    measures(
        user(
            &["gaia_healpix_index"],
            Function::GaiaHealpixIndex,
            &[form(&[arg("hpx_order", Wants::Long), arg("source_id", Wants::Long)], LONG)],
            "The index of the HEALPix cell of this order (0 to 12), in the NESTED scheme, that a Gaia source \
             identifier names.",
        ),
        Measure::Fixed("", "pos.healpix"),
    ),
    user(
        &["ivo_epoch_prop", "epoch_prop", "esdc_epoch_prop"],
        Function::EpochPropagate,
        &[form(SIX_PARAMETERS, Yields::Type(Type::Array(Element::Double)))],
        "The six astrometric parameters of a source (degrees, mas, mas/yr, km/s) at another epoch, both epochs \
         in Julian years, by linear motion in space. A parallax, motion or velocity that is NULL counts as zero.",
    ),
    measures(
        user(
            &["ivo_epoch_prop_pos", "epoch_prop_pos", "esdc_epoch_prop_pos"],
            Function::EpochPropagatePosition,
            &[form(SIX_PARAMETERS, POINT)],
            "The position of a source (degrees, mas, mas/yr, km/s) at another epoch, both epochs in Julian \
             years, by linear motion in space. A parallax, motion or velocity that is NULL counts as zero.",
        ),
        Measure::Fixed("deg", ""),
    ),
    measures(
        user(
            &["ivo_geom_transform", "gavo_transform"],
            Function::GeometryTransform,
            &[form(
                &[arg("from_sys", Wants::TextLiteral), arg("to_sys", Wants::TextLiteral), OF_GEOMETRY],
                Yields::Arguments,
            )],
            "The geometry in another reference frame, by a rotation. The frames are literals: ICRS, FK5 \
             (J2000), FK4 (B1950), GALACTIC, ECLIPTIC (J2000).",
        ),
        Measure::Fixed("deg", ""),
    ),
    measures(
        user(
            &["ivo_to_jd", "gavo_to_jd"],
            Function::ToJd,
            &[form(&[arg("d", Wants::Timestamp)], DOUBLE)],
            "The Julian date of a timestamp, as it stands in its own scale.",
        ),
        Measure::Fixed("d", "time.epoch"),
    ),
    measures(
        user(
            &["ivo_to_mjd", "gavo_to_mjd"],
            Function::ToMjd,
            &[form(&[arg("d", Wants::Timestamp)], DOUBLE)],
            "The modified Julian date of a timestamp, as it stands in its own scale.",
        ),
        Measure::Fixed("d", "time.epoch"),
    ),
    rewrite(
        &["ivo_nocasematch"],
        Rewrite::NoCaseMatch,
        &[form(&[arg("val", Wants::Text), arg("pattern", Wants::Text)], Yields::Truth)],
        "1 if the text is like the pattern (with % and _), whatever the case, 0 otherwise.",
    ),
    user(
        &["ivo_hasword"],
        Function::HasWord,
        &[form(&[arg("haystack", Wants::Text), arg("needle", Wants::Text)], Yields::Truth)],
        "1 if each word of the needle is a word of the haystack, whatever the case, 0 otherwise.",
    ),
    user(
        &["ivo_hashlist_has"],
        Function::HashListHas,
        &[form(&[arg("hashlist", Wants::Text), arg("item", Wants::Text)], Yields::Truth)],
        "1 if the item is in a list of words with # between them, whatever the case, 0 otherwise.",
    ),
    user(
        &["ivo_normal_random", "gavo_normal_random"],
        Function::NormalRandom,
        &[form(&[arg("mu", Wants::Double), arg("sigma", Wants::Double)], DOUBLE)],
        "A random number from the normal distribution of this mean and width.",
    ),
    user(
        &["ivo_interval_overlaps"],
        Function::IntervalOverlaps,
        &[form(
            &[
                arg("a1", Wants::Double),
                arg("b1", Wants::Double),
                arg("a2", Wants::Double),
                arg("b2", Wants::Double),
            ],
            Yields::Truth,
        )],
        "1 if the interval from a1 to b1 shares a point with that from a2 to b2, 0 otherwise.",
    ),
    measures(
        user(
            &["ivo_hms_to_degrees"],
            Function::HmsToDegrees,
            &[form(&[arg("hms", Wants::Text)], DOUBLE)],
            "Degrees of hours, minutes and seconds: h:m:s, hhmmss or hHmMsS; NULL for anything else.",
        ),
        Measure::Fixed("deg", ""),
    ),
    measures(
        user(
            &["ivo_dms_to_degrees"],
            Function::DmsToDegrees,
            &[form(&[arg("dms", Wants::Text)], DOUBLE)],
            "Degrees of degrees, minutes and seconds: d:m:s, ddmmss or dDmMsS, perhaps with a sign; NULL for \
             anything else.",
        ),
        Measure::Fixed("deg", ""),
    ),
    rewrite(
        &["gavo_specconv"],
        Rewrite::SpectralConvert,
        &[
            form(
                &[
                    arg("val", Wants::Double),
                    arg("from_unit", Wants::TextLiteral),
                    arg("to_unit", Wants::TextLiteral),
                ],
                DOUBLE,
            ),
            form(&[arg("val", Wants::Double), arg("to_unit", Wants::TextLiteral)], DOUBLE),
        ],
        "A wavelength, frequency, energy or wavenumber as another of these, in the given unit. The units are \
         literals; without the first the value's own unit is taken.",
    ),
    user(
        &["gavo_match"],
        Function::Match,
        &[form(&[arg("pattern", Wants::Text), arg("txt", Wants::Text)], Yields::Truth)],
        "1 if the regular expression matches anything in the text, 0 otherwise.",
    ),
    user_aggregate(
        aggregate(
            &["ivo_string_agg", "gavo_string_agg", "string_agg"],
            Aggregator::StringAgg,
            &[form(&[arg("expression", Wants::Text), arg("delimiter", Wants::Text)], TEXT)],
            Measure::Nothing,
        ),
        "An aggregate: all texts that are not NULL, with the delimiter between them.",
    ),
    user_aggregate(
        aggregate(
            &["ivo_histogram", "gavo_histogram"],
            Aggregator::Histogram,
            &[form(
                &[
                    arg("val", Wants::Double),
                    arg("low", Wants::Double),
                    arg("high", Wants::Double),
                    arg("nbins", Wants::Long),
                ],
                Yields::Type(Type::Array(Element::Long)),
            )],
            Measure::Fixed("", "meta.number"),
        ),
        "An aggregate: how many values lie below low, in each of nbins bins of one width, and above high. NULL \
         counts as below.",
    ),
    user_aggregate(
        aggregate(&["stddev", "stddev_samp"], Aggregator::StdDev, UNARY, Measure::Statistic("stat.stdev")),
        "An aggregate: the standard deviation of the sample.",
    ),
    user_aggregate(
        aggregate(&["variance", "var_samp"], Aggregator::Variance, UNARY, Measure::Square),
        "An aggregate: the variance of the sample.",
    ),
    user_aggregate(
        aggregate(&["median"], Aggregator::Median, UNARY, Measure::Statistic("stat.median")),
        "An aggregate: the median.",
    ),
];
