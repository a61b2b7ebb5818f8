//! The parameters of clause 6, each with the rules for reading its raw value.

use crate::percent::Plus;

macro_rules! parameters {
    ($($variant:ident $name:literal $plus:ident $list:literal,)*) => {
        /// A query parameter that some resource takes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Param { $($variant,)* }

        const ROWS: &[(Param, &str, Plus, bool)] = &[$((Param::$variant, $name, Plus::$plus, $list),)*];

        impl Param {
            /// The parameter spelled `name`.
            pub(crate) fn from_name(name: &str) -> Option<Param> {
                match name {
                    $($name => Some(Param::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

// Name, spelling, what `+` means in it, whether it is a list that may be repeated. A plus sign is itself where the
// grammar has no spaces but may have plus signs: URIs, regular expressions, scopes (4.19), types (4.17).
parameters! {
    Attrs "attrs" Space true,
    Collation "collation" Space false,
    ContainedBy "containedBy" Literal true,
    Coordinates "coordinates" Space false,
    Count "count" Space false,
    Csf "csf" Space false,
    DatasetId "datasetId" Literal true,
    DeleteAll "deleteAll" Space false,
    Details "details" Space false,
    Drop "drop" Space true,
    ExpandValues "expandValues" Space true,
    Format "format" Space false,
    Geometry "geometry" Space false,
    GeometryProperty "geometryProperty" Space false,
    Geoproperty "geoproperty" Space false,
    Georel "georel" Space false,
    Id "id" Literal true,
    IdPattern "idPattern" Literal false,
    Join "join" Space false,
    JoinLevel "joinLevel" Space false,
    JsonKeys "jsonKeys" Space true,
    Keep "keep" Space true,
    Kind "kind" Space false,
    Lang "lang" Space false,
    Limit "limit" Space false,
    Local "local" Space false,
    ObservedAt "observedAt" Literal false,
    Offset "offset" Space false,
    Omit "omit" Space true,
    Options "options" Space true,
    OrderBy "orderBy" Space true,
    OrderFrom "orderFrom" Space false,
    OrderGeometry "orderGeometry" Space false,
    Pick "pick" Space true,
    Q "q" Space false,
    Reload "reload" Space false,
    ScopeQ "scopeQ" Literal false,
    SplitEntities "splitEntities" Space false,
    Type "type" Literal true,
}

const _: () = assert!(ROWS.len() <= 64, "a set of parameters is one 64-bit word");

impl Param {
    /// The parameter's spelling.
    pub(crate) fn name(self) -> &'static str {
        ROWS[self as usize].1
    }

    /// What a `+` in its raw value means.
    pub(crate) fn plus(self) -> Plus {
        ROWS[self as usize].2
    }

    /// Whether it is a list, which may come in several parts.
    pub(crate) fn is_list(self) -> bool {
        ROWS[self as usize].3
    }
}

/// A set of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Set(u64);

impl Set {
    /// No parameter at all.
    pub(crate) const NONE: Set = Set(0);

    /// Every parameter.
    pub(crate) const ALL: Set = Set((1 << ROWS.len()) - 1);

    /// The set of these parameters.
    pub(crate) const fn of(params: &[Param]) -> Set {
        let mut bits = 0;
        let mut at = 0;
        while at < params.len() {
            bits |= 1 << params[at] as u64;
            at += 1;
        }
        Set(bits)
    }

    /// This set and another one.
    pub(crate) const fn and(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    /// Whether the set has `param`.
    pub(crate) fn has(self, param: Param) -> bool {
        self.0 & (1 << param as u64) != 0
    }

    /// The parameters of the set.
    pub(crate) fn iter(self) -> impl Iterator<Item = Param> {
        ROWS.iter().map(|row| row.0).filter(move |param| self.has(*param))
    }
}
