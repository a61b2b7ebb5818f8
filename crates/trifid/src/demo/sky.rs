//! The sky behind the archive door: a star catalogue, an observatory's exposures, and ObsCore made of them.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use trifid_archive_datafusion::store::{Input, open_parquet};
use trifid_archive_engine::catalogue::{Published, SchemaInfo};
use trifid_archive_engine::metadata::{Description, describe, indexed};
use trifid_archive_engine::obscore::{self, Mapping};
use trifid_archive_engine::table::Table;
use trifid_archive_model::csv::{self, Delimiter};

use crate::house::House;

/// The schema of what the demo brings along.
const SCHEMA: &str = "demo";

/// Rows read at once.
const BATCH_ROWS: usize = 65_536;

macro_rules! sample {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/archive/", $name))
    };
}

const HIPPARCOS: &[u8] = sample!("hipparcos.parquet");
const HIPPARCOS_SAID: &[u8] = sample!("hipparcos.toml");
const EXPOSURES: &[u8] = sample!("exposures.csv");
const EXPOSURES_SAID: &[u8] = sample!("exposures.toml");
const OBSCORE: &[u8] = sample!("obscore.toml");

/// Publishes the tables, and says what to try.
pub(super) async fn settle(house: &House) -> anyhow::Result<String> {
    let archive = &house.archive.as_ref().context("the demo needs the archive door")?.archive;
    let stars = open_parquet("hipparcos.parquet", Bytes::from_static(HIPPARCOS))?;
    let exposures = Input {
        name: "exposures.csv".into(),
        reader: Box::new(csv::Reader::new(EXPOSURES, &csv::Options::new(Delimiter::Comma))?),
    };
    let (schema, stars) = table("hipparcos", stars, HIPPARCOS_SAID)?;
    let (_, exposures) = table("exposures", exposures, EXPOSURES_SAID)?;
    let rows = stars.table.rows();
    archive.add(&[schema], &[Arc::new(stars), Arc::new(exposures)])?;
    let mapping = Mapping::parse(std::str::from_utf8(OBSCORE)?)?;
    let (schema, observations) = obscore::make(archive, &mapping).await?;
    let count = observations.table.rows();
    archive.add(&[schema], &[Arc::new(observations)])?;
    Ok(things_to_try(house.address, rows, count))
}

/// A table in memory out of what the program carries.
fn table(name: &str, mut input: Input, said: &[u8]) -> anyhow::Result<(SchemaInfo, Published)> {
    let description = Description::parse(std::str::from_utf8(said)?)?;
    let fields = Arc::clone(input.reader.fields());
    let (head, info) = describe(SCHEMA, name, &fields, &description)?;
    let mut batches = Vec::new();
    while let Some(batch) = input.reader.next_batch(BATCH_ROWS)? {
        batches.push(batch);
    }
    let wanted = indexed(&head, &info);
    let table = Arc::new(Table::in_memory(head, &batches, &wanted)?);
    let schema = SchemaInfo {
        name: SCHEMA.into(),
        description: description.schema.description,
        utype: description.schema.utype,
        index: description.schema.index,
    };
    Ok((schema, Published { table, info }))
}

/// Three queries and what they show.
const QUERIES: &[(&str, &str)] = &[
    (
        "the stars within half a degree of the Pleiades' centre, brightest first",
        "SELECT hip, ra, dec, hpmag FROM demo.hipparcos \
         WHERE DISTANCE(ra, dec, 56.601, 24.114) < 0.5 ORDER BY hpmag",
    ),
    (
        "which bright stars lie in the field of which exposure: a cross-match",
        "SELECT e.exposure_id, e.target, h.hip, h.hpmag FROM demo.exposures AS e JOIN demo.hipparcos AS h \
         ON DISTANCE(e.ra, e.dec, h.ra, h.dec) < 0.2 WHERE h.hpmag < 4 ORDER BY h.hpmag",
    ),
    (
        "a map of the sky: stars and their mean parallax by HEALPix cell of order 2",
        "SELECT ivo_healpix_index(2, ra, dec) AS cell, COUNT(*) AS stars, AVG(plx) AS mean_plx \
         FROM demo.hipparcos GROUP BY ivo_healpix_index(2, ra, dec) ORDER BY stars DESC",
    ),
];

fn things_to_try(address: SocketAddr, stars: u64, observations: u64) -> String {
    let mut text = format!(
        "\nThe sky is open: {stars} stars and {observations} observations at http://{address}/tap \
         (a page to look at; the address for TOPCAT, pyVO and Aladin)\n"
    );
    for (what, query) in QUERIES {
        let _ = write!(
            text,
            "\n# {what}\ncurl -s http://{address}/tap/sync -d LANG=ADQL -d FORMAT=text \\\n  \
             --data-urlencode \"QUERY={query}\"\n"
        );
    }
    let _ = write!(
        text,
        "\n# the same from Python\npython3 -c 'import pyvo; print(pyvo.dal.TAPService(\"http://{address}/tap\")\
         .search(\"SELECT TOP 5 * FROM ivoa.obscore\"))'\n"
    );
    text
}
