//! A catalogue in memory, for tests: a star catalogue, an `ivoa.obscore`, TAP_SCHEMA and an upload.

use std::sync::Arc;

use crate::catalogue::{Catalogue, Name, Table};
use crate::types::{Element, Field, Size, Type};

/// Tables in memory.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    tables: Vec<Table>,
}

impl Tables {
    /// No tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more table.
    #[must_use]
    pub fn with(mut self, schema: &str, name: &str, fields: Vec<Field>) -> Self {
        self.tables.push(Table { schema: schema.into(), name: name.into(), fields: fields.into() });
        self
    }

    /// `demo.hipparcos`, `demo.neighbours`, `ivoa.obscore`, `tap_schema` and `TAP_UPLOAD.mine`.
    pub fn demo() -> Self {
        Self::new()
            .with("demo", "hipparcos", hipparcos())
            .with("demo", "neighbours", neighbours())
            .with("demo", "types", types())
            .with("ivoa", "obscore", obscore())
            .with("tap_schema", "schemas", texts(&["schema_name", "utype", "description"], &["schema_index"]))
            .with("tap_schema", "tables", tap_tables())
            .with("tap_schema", "columns", tap_columns())
            .with("TAP_UPLOAD", "mine", upload())
    }
}

impl Catalogue for Tables {
    fn find(&self, schema: Option<&Name>, table: &Name) -> Vec<Table> {
        let fits = |found: &&Table| {
            table.matches(&found.name) && schema.is_none_or(|schema| schema.matches(&found.schema))
        };
        self.tables.iter().filter(fits).cloned().collect()
    }

    fn names(&self) -> Vec<String> {
        self.tables.iter().map(|table| format!("{}.{}", table.schema, table.name)).collect()
    }
}

/// A column with its unit and UCD.
pub fn field(name: &str, ty: Type, unit: &str, ucd: &str) -> Field {
    let some = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
    Field { unit: some(unit), ucd: some(ucd), ..Field::new(name, ty) }
}

fn hipparcos() -> Vec<Field> {
    let mut ra = field("ra", Type::Double, "deg", "pos.eq.ra;meta.main");
    ra.utype = Some("stc:AstroCoords.Position2D.Value2.C1".into());
    ra.description = Some("Right ascension at J1991.25".into());
    vec![
        field("hip", Type::Int, "", "meta.id;meta.main"),
        ra,
        field("dec", Type::Double, "deg", "pos.eq.dec;meta.main"),
        field("plx", Type::Double, "mas", "pos.parallax"),
        field("pmra", Type::Double, "mas/yr", "pos.pm;pos.eq.ra"),
        field("pmdec", Type::Double, "mas/yr", "pos.pm;pos.eq.dec"),
        field("e_plx", Type::Double, "mas", "stat.error;pos.parallax"),
        field("hpmag", Type::Float, "mag", "phot.mag;em.opt"),
        field("b_v", Type::Float, "mag", "phot.color;em.opt.B;em.opt.V"),
        field("v_i", Type::Float, "mag", "phot.color;em.opt.V;em.opt.I"),
        field("sn", Type::Short, "", "meta.code"),
        field("nc", Type::UnsignedByte, "", "meta.number"),
        field("name", Type::Text, "", "meta.id"),
    ]
}

fn neighbours() -> Vec<Field> {
    vec![
        field("hip", Type::Int, "", "meta.id"),
        field("source_id", Type::Long, "", "meta.id"),
        field("distance", Type::Double, "arcsec", "pos.angDistance"),
        field("flag", Type::Boolean, "", "meta.code"),
    ]
}

/// A column of each type.
fn types() -> Vec<Field> {
    [
        ("bool", Type::Boolean),
        ("bit", Type::Bit),
        ("ubyte", Type::UnsignedByte),
        ("short", Type::Short),
        ("int", Type::Int),
        ("long", Type::Long),
        ("float", Type::Float),
        ("double", Type::Double),
        ("fcomplex", Type::FloatComplex),
        ("dcomplex", Type::DoubleComplex),
        ("txt", Type::Text),
        ("time", Type::Timestamp),
        ("pt", Type::Point),
        ("circ", Type::Circle),
        ("poly", Type::Polygon),
        ("reg", Type::Region),
        ("arr", Type::Array(Element::Double)),
    ]
    .into_iter()
    .map(|(name, ty)| Field::new(name, ty))
    .collect()
}

/// The mandatory columns of ObsCore 1.1 (table 1).
fn obscore() -> Vec<Field> {
    let ucds = [
        ("dataproduct_type", Type::Text, "", "meta.code.class"),
        ("calib_level", Type::Int, "", "meta.code;obs.calib"),
        ("obs_collection", Type::Text, "", "meta.id"),
        ("obs_id", Type::Text, "", "meta.id"),
        ("obs_publisher_did", Type::Text, "", "meta.ref.ivoid"),
        ("access_url", Type::Text, "", "meta.ref.url"),
        ("access_format", Type::Text, "", "meta.code.mime"),
        ("access_estsize", Type::Long, "kbyte", "phys.size;meta.file"),
        ("target_name", Type::Text, "", "meta.id;src"),
        ("s_ra", Type::Double, "deg", "pos.eq.ra"),
        ("s_dec", Type::Double, "deg", "pos.eq.dec"),
        ("s_fov", Type::Double, "deg", "phys.angSize;instr.fov"),
        ("s_region", Type::Region, "", "pos.outline;obs.field"),
        ("s_resolution", Type::Double, "arcsec", "pos.angResolution"),
        ("s_xel1", Type::Long, "", "meta.number"),
        ("s_xel2", Type::Long, "", "meta.number"),
        ("t_min", Type::Double, "d", "time.start;obs.exposure"),
        ("t_max", Type::Double, "d", "time.end;obs.exposure"),
        ("t_exptime", Type::Double, "s", "time.duration;obs.exposure"),
        ("t_resolution", Type::Double, "s", "time.resolution"),
        ("t_xel", Type::Long, "", "meta.number"),
        ("em_min", Type::Double, "m", "em.wl;stat.min"),
        ("em_max", Type::Double, "m", "em.wl;stat.max"),
        ("em_res_power", Type::Double, "", "spect.resolution"),
        ("em_xel", Type::Long, "", "meta.number"),
        ("o_ucd", Type::Text, "", "meta.ucd"),
        ("pol_states", Type::Text, "", "meta.code;phys.polarization"),
        ("pol_xel", Type::Long, "", "meta.number"),
        ("facility_name", Type::Text, "", "meta.id;instr.tel"),
        ("instrument_name", Type::Text, "", "meta.id;instr"),
    ];
    ucds.into_iter().map(|(name, ty, unit, ucd)| field(name, ty, unit, ucd)).collect()
}

fn texts(names: &[&str], integers: &[&str]) -> Vec<Field> {
    let texts = names.iter().map(|name| Field::new(*name, Type::Text));
    texts.chain(integers.iter().map(|name| Field::new(*name, Type::Int))).collect()
}

fn tap_tables() -> Vec<Field> {
    let names = ["schema_name", "table_name", "table_type", "utype", "description"];
    texts(&names, &["table_index"])
}

fn tap_columns() -> Vec<Field> {
    let names = [
        "table_name",
        "column_name",
        "datatype",
        "arraysize",
        "xtype",
        "description",
        "utype",
        "unit",
        "ucd",
    ];
    texts(&names, &["size", "indexed", "principal", "std", "column_index"])
}

/// What people upload: odd names, and two that differ in case alone.
fn upload() -> Vec<Field> {
    let mut text = Field::new("2mass", Type::Text);
    text.size = Size::Variable(Some(16));
    vec![
        Field::new("Ra", Type::Double),
        Field::new("ra", Type::Double),
        Field::new("Dec", Type::Double),
        text,
        field("flux", Type::Float, "furlong", ""),
        Field::new("when", Type::Timestamp),
    ]
}
