use super::{Options, Resolved, resolve};
use crate::language::Language;
use crate::parser::parse;
use crate::testing::Tables;

fn resolved(text: &str) -> Result<Resolved, String> {
    let query = parse(text, Language::V2_1).map_err(|error| error.report(text).to_string())?;
    resolve(&query, &Tables::demo(), &Options::default()).map_err(|error| error.report(text).to_string())
}

#[test]
fn a_cone() {
    let text = "SELECT TOP 5 ra FROM hipparcos WHERE 1=CONTAINS(POINT('ICRS', ra, dec), CIRCLE(POINT(56.75, 24), 0.5))";
    assert_eq!(
        resolved(text).expect("a query").query.to_string(),
        "SELECT t0.ra AS ra FROM demo.hipparcos t0 \
         WHERE Contains(Point(t0.ra, t0.dec), Circle(56.75, 24.0, 0.5)) TOP 5"
    );
}
