//! The tables that the door serves: those of the store, looked at again when something changes there.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trifid_archive_engine::archive::Archive;
use trifid_archive_face::ExtraFormat;
use trifid_base_runtime::Shutdown;

use super::Options;

#[cfg(feature = "archive-datafusion")]
pub(crate) use stored::{Tables, formats, store};
#[cfg(not(feature = "archive-datafusion"))]
pub(crate) use without::{Tables, formats};

#[cfg(feature = "archive-datafusion")]
mod stored {
    use bytes::Bytes;
    use trifid_archive_datafusion::store::{self, ParquetResult, Store, Stored, read_parquet};
    use trifid_archive_engine::cache::ColumnCache;
    use trifid_archive_engine::catalogue::{Published, SchemaInfo};
    use trifid_archive_face::{Bounds, Read};
    use trifid_archive_model::sniff::Format;
    use trifid_archive_model::write::{Head, TableWriter};

    use super::*;

    /// The store's tables in an archive.
    pub(crate) struct Tables {
        store: Store,
        archive: Arc<Archive>,
        /// What the store was when it was published last.
        published: Vec<String>,
    }

    /// The store of a data directory.
    pub(crate) fn store(options: &Options, folder: &Path) -> Store {
        Store::new(folder.join("tables"), Arc::new(ColumnCache::new(options.cache.0)))
    }

    impl Tables {
        pub(crate) fn new(options: &Options, folder: &Path, archive: Arc<Archive>) -> Self {
            Self { store: store(options, folder), archive, published: Vec::new() }
        }

        /// Publishes what the store has. A table that cannot be opened is left out, and an operator told: the
        /// others are served.
        pub(crate) fn publish(&mut self) -> anyhow::Result<()> {
            let state = self.store.state()?;
            let (mut schemas, mut tables): (Vec<SchemaInfo>, Vec<Arc<Published>>) = Default::default();
            for (schema, table) in self.store.list()? {
                match self.store.open(&schema, &table) {
                    Ok(stored) => add(stored, &mut schemas, &mut tables),
                    Err(error) => {
                        tracing::error!(
                            table = format!("{schema}.{table}"),
                            error = &error as &dyn std::error::Error,
                            "a table cannot be served"
                        );
                    }
                }
            }
            self.archive.replace(schemas, tables)?;
            self.published = state;
            Ok(())
        }

        /// Publishes again whenever the store has changed, until the shutdown.
        pub(crate) async fn watch(
            mut self,
            interval: Duration,
            shutdown: Shutdown,
        ) -> Result<(), Infallible> {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(interval) => {}
                    () = shutdown.triggered() => return Ok(()),
                }
                // Reading small files and footers: on a thread that may block.
                let looked = tokio::task::spawn_blocking(move || {
                    let outcome = self.look();
                    (self, outcome)
                });
                let Ok((tables, outcome)) = looked.await else { return Ok(()) };
                self = tables;
                if let Err(error) = outcome {
                    tracing::error!(error = format!("{error:#}"), "the store of tables cannot be read");
                }
            }
        }

        fn look(&mut self) -> anyhow::Result<()> {
            if self.store.state()? == self.published {
                return Ok(());
            }
            self.publish()?;
            tracing::info!(tables = self.published.len(), "published the tables again");
            Ok(())
        }
    }

    fn add(stored: Stored, schemas: &mut Vec<SchemaInfo>, tables: &mut Vec<Arc<Published>>) {
        match schemas.iter_mut().find(|schema| schema.name == stored.schema.name) {
            // Any table of a schema may describe it.
            Some(schema) if schema.description.is_none() => *schema = stored.schema,
            Some(_) => {}
            None => schemas.push(stored.schema),
        }
        tables.push(stored.published);
    }

    /// Formats that this binary writes beside those of the face.
    pub(crate) fn formats() -> Vec<Arc<dyn ExtraFormat>> {
        vec![Arc::new(Parquet)]
    }

    /// Parquet with a VOTable header.
    struct Parquet;

    impl ExtraFormat for Parquet {
        fn media(&self) -> &'static str {
            "application/vnd.apache.parquet"
        }

        fn names(&self) -> &'static [&'static str] {
            &["parquet", "vo-parquet", "application/parquet"]
        }

        fn extension(&self) -> &'static str {
            "parquet"
        }

        fn tells_end(&self) -> bool {
            true
        }

        fn writer(&self, head: Head) -> Box<dyn TableWriter> {
            Box::new(ParquetResult::new(head))
        }

        fn reader(&self, found: Format, file: &Bytes, bounds: Bounds) -> Option<Read> {
            let Bounds { rows, bytes } = bounds;
            (found == Format::Parquet).then(|| read_parquet(file, store::Bounds { rows, bytes }))
        }
    }
}

#[cfg(not(feature = "archive-datafusion"))]
mod without {
    use super::*;

    /// Without Parquet there is no store.
    pub(crate) struct Tables;

    impl Tables {
        pub(crate) fn new(_: &Options, _: &Path, _: Arc<Archive>) -> Self {
            Self
        }

        pub(crate) fn publish(&mut self) -> anyhow::Result<()> {
            Ok(())
        }

        pub(crate) async fn watch(self, _: Duration, _: Shutdown) -> Result<(), Infallible> {
            Ok(())
        }
    }

    pub(crate) fn formats() -> Vec<Arc<dyn ExtraFormat>> {
        Vec::new()
    }
}
