//! Entry points that take any bytes: the bodies of the fuzz targets under `fuzz/`, and of the tests that
//! replay their corpus on the stable toolchain.
//!
//! Each returns normally for every input. What it asserts is a law of this crate, so a panic is a defect.

use crate::input::{Mode, Reader};
use crate::json::Doc;
use crate::ld::{Context, CoreVersion, Cores};
use crate::query::{geo, lang, order, project, q, scope, types};
use crate::record::Record;
use crate::render::{Format, Renderer, Style};
use crate::symbol::{Budget, Symbols};
use crate::time::Instant;
use crate::{canonical, ld, update};

/// Target `context_document`: a `@context` document.
pub fn context_document(bytes: &[u8]) {
    let _ = ld::fuzz(bytes);
}

/// Target `entity`: a request body is read in every mode; what makes an entity is stored, rendered in every
/// representation, and read back from its canonical form unchanged.
pub fn entity(bytes: &[u8]) {
    let Ok(doc) = Doc::parse(bytes) else { return };
    let symbols = Symbols::new();
    let budget = Budget::new(10_000);
    let cores = Cores::new();
    let context: &Context = cores.get(CoreVersion::LATEST);
    for flags in 0..8_u8 {
        let mode = Mode { nulls: flags & 1 != 0, nested_nulls: flags & 2 != 0, simplified: flags & 4 != 0 };
        let reader = Reader { context, symbols: &symbols, budget: &budget, mode };
        let Ok(input) = reader.entity(doc.root()) else { continue };
        let Ok(record) = update::create(input, Instant(1)) else { continue };
        render(&record, context, &symbols);
        round_trip(&record, &symbols, &budget);
        if let Ok(input) = reader.entity(doc.root()) {
            let _ = update::merge(&record, input, update::Merge::default(), Instant(2));
        }
        if let Ok(input) = reader.entity(doc.root()) {
            let _ = update::append(&record, input, Instant(2), false);
        }
    }
}

fn render(record: &Record, context: &Context, symbols: &Symbols) {
    for format in [Format::Normalized, Format::Concise, Format::Simplified] {
        for sys_attrs in [false, true] {
            let style = Style { format, sys_attrs, ..Style::default() };
            let mut out = Vec::new();
            Renderer { context, symbols, now: Instant(0), style: &style }.entity(record, &mut out);
            assert!(Doc::parse(&out).is_ok(), "an answer is valid JSON: {}", String::from_utf8_lossy(&out));
        }
    }
}

fn round_trip(record: &Record, symbols: &Symbols, budget: &Budget) {
    let mut written = Vec::new();
    canonical::write(record, symbols, &mut written);
    let back = canonical::read(&written, symbols, budget).expect("the canonical form reads back");
    let mut again = Vec::new();
    canonical::write(&back, symbols, &mut again);
    assert_eq!(written, again, "the canonical form is a fixed point");
}

/// Target `q`: a query prints as a query of the same meaning.
pub fn query(text: &str) {
    if let Ok(parsed) = q::parse(text) {
        let printed = parsed.to_string();
        let again = q::parse(&printed);
        assert_eq!(again.as_ref(), Ok(&parsed), "{printed}");
    }
}

/// Target `geo`: relation, geometry and coordinates, a line each; the last line also as a GeoJSON value.
pub fn geo_query(text: &str) {
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (relation, geometry, coordinates) = (line(), line(), line());
    if let Ok(parsed) = geo::parse(relation, geometry, coordinates) {
        let _ = parsed.matches_value(r#"{"type":"Point","coordinates":[1,2]}"#);
    }
    if let Ok(doc) = Doc::parse(coordinates.as_bytes())
        && geo::validate(doc.root()).is_ok()
    {
        let _ = geo::bounds(coordinates);
    }
}

/// Target `selection`: type, scope, order, projection and language expressions alike.
pub fn selection(text: &str) {
    let _ = scope::parse(text);
    let _ = types::parse("type", text);
    let _ = order::parse(text);
    let _ = project::parse("pick", text);
    let _ = lang::parse(text);
}
