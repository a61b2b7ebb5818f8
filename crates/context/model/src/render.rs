//! Records to bytes: the representations of an entity (4.5.2 to 4.5.5, 4.5.16 to 4.5.24).
//!
//! An answer is appended to the caller's buffer as a sequence of copies out of the record: names from the
//! context's table of quoted terms, instances from their fragments. There is no tree and, without joins, no
//! allocation besides the growth of the buffer. What an attribute costs beyond its bytes is a comparison of
//! its symbol with the projection and of its expiry with the clock.
//!
//! ```text
//! normalized   "speed":{ <fragment> }                  members beyond the fragment follow it
//! concise      "speed":{ <fragment without type> }     or the value alone
//! simplified   "speed":<value>
//! ```
//!
//! Members are written with a comma behind each, and the last comma becomes the closing bracket. Several
//! instances of one attribute are neighbours in the record, so the second one turns what the first wrote into
//! a list; that moves bytes, but only for attributes that have several instances.
//!
//! An instance that has expired is not shown, whether or not the sweep has been (4.22).

mod concise;
mod feature;
mod join;
mod language;
mod pen;
mod projection;
mod scan;
mod simplified;
pub(crate) mod stamp;

#[cfg(test)]
pub(crate) mod tests;

pub use join::{Join, Linked, Resolve};
pub use projection::Projection;

use crate::ld::Context;
use crate::query::dataset::DatasetIds;
use crate::query::lang::LanguagePreferences;
use crate::record::{Instance, Record};
use crate::symbol::{Symbol, Symbols};
use crate::time::Instant;
use pen::Pen;

/// How attributes are represented (6.3.7).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Every attribute with its type and all its members (4.5.2.2 and siblings).
    #[default]
    Normalized,
    /// Without loss and without what can be inferred (4.5.2.3 and siblings).
    Concise,
    /// Values alone, also called keyValues (4.5.4).
    Simplified,
}

/// The entity as a GeoJSON Feature (4.5.16, 4.5.17).
#[derive(Debug, Clone, Copy)]
pub struct Feature {
    /// The GeoProperty that gives the geometry; `None` is a name that no entity has.
    pub geometry: Option<Symbol>,
}

/// What a request asks of the answer's shape, bound once.
#[derive(Debug, Clone, Default)]
pub struct Style<'r> {
    /// How attributes are represented.
    pub format: Format,
    /// Entities and attributes carry `createdAt`, `modifiedAt` and `expiresAt` (6.3.11).
    pub sys_attrs: bool,
    /// Language properties become strings in the language preferred (4.15).
    pub lang: Option<&'r LanguagePreferences>,
    /// Which members are shown.
    pub projection: Projection,
    /// Which instances of each attribute are shown (4.5.5).
    pub datasets: Option<DatasetIds>,
    /// Entities are GeoJSON Features.
    pub feature: Option<Feature>,
    /// The value of the member `@context`, as JSON text; present where the body carries the context (6.3.6).
    pub context: Option<&'r [u8]>,
}

/// Renders records in one style under one context.
#[derive(Clone, Copy)]
pub struct Renderer<'r> {
    /// Spells the names.
    pub context: &'r Context,
    /// The table that the records' symbols belong to.
    pub symbols: &'r Symbols,
    /// The time at which the answer is given.
    pub now: Instant,
    /// What the request asks for.
    pub style: &'r Style<'r>,
}

impl std::fmt::Debug for Renderer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renderer").field("now", &self.now).field("style", self.style).finish_non_exhaustive()
    }
}

impl<'r> Renderer<'r> {
    /// Appends the entity; false when the projection leaves none of its members.
    pub fn entity(&self, record: &Record, out: &mut Vec<u8>) -> bool {
        Pen::new(self, None, out).document(record, Some(&self.style.projection), true)
    }

    /// Appends the entity with the entities that it links to inside it (4.5.23.2).
    pub fn entity_joined(&self, record: &Record, join: &mut Join<'_>, out: &mut Vec<u8>) -> bool {
        join.begin([record]);
        Pen::new(self, Some(join), out).document(record, Some(&self.style.projection), true)
    }

    /// Appends what begins a list of entities: an array, or a FeatureCollection (4.5.16.3).
    pub fn open_list(&self, out: &mut Vec<u8>) {
        let open: &[u8] = match self.style.feature {
            Some(_) => br#"{"type":"FeatureCollection","features":["#,
            None => b"[",
        };
        out.extend_from_slice(open);
    }

    /// Appends one entity of a list with its comma; false, and nothing appended, when the projection leaves
    /// none of its members.
    pub fn item(&self, record: &Record, out: &mut Vec<u8>) -> bool {
        self.list_item(Pen::new(self, None, out), record, Some(&self.style.projection))
    }

    /// Like [`Renderer::item`] with the entities that it links to inside it.
    pub fn item_joined(&self, record: &Record, join: &mut Join<'_>, out: &mut Vec<u8>) -> bool {
        join.begin([record]);
        self.list_item(Pen::new(self, Some(join), out), record, Some(&self.style.projection))
    }

    /// Appends an entity that [`Renderer::linked`] found, with its comma.
    pub fn linked_item(&self, linked: &Linked<'_>, out: &mut Vec<u8>) -> bool {
        self.list_item(Pen::new(self, None, out), &linked.record, linked.projection)
    }

    fn list_item(&self, mut pen: Pen<'_, '_>, record: &Record, projection: Option<&Projection>) -> bool {
        let start = pen.out.len();
        // In a FeatureCollection the context stands once, at the end (4.5.16.3).
        let shown = pen.document(record, projection, self.style.feature.is_none());
        if shown {
            pen.out.push(b',');
        } else {
            pen.out.truncate(start);
        }
        shown
    }

    /// Appends what ends a list: closes over the last comma.
    pub fn close_list(&self, out: &mut Vec<u8>) {
        pen::close(out, b']');
        if self.style.feature.is_none() {
            return;
        }
        if let Some(context) = self.style.context {
            out.extend_from_slice(br#","@context":"#);
            out.extend_from_slice(context);
        }
        out.push(b'}');
    }

    /// Appends the instances of the attribute `name` as the value that it has in its entity; false, and
    /// nothing appended, when none is shown.
    pub fn attribute(&self, record: &Record, name: Symbol, out: &mut Vec<u8>) -> bool {
        Pen::new(self, None, out).attribute_value(record.instances().filter(|own| own.name() == name))
    }

    /// True when the answer shows the instance of an entity's attribute: its name is asked for, its dataset
    /// too, and it has not expired.
    #[inline]
    pub fn shows(&self, instance: Instance<'_>, projection: Option<&Projection>) -> bool {
        projection.is_none_or(|projection| projection.shows(instance.name()))
            && self.is_alive(instance)
            && self.style.datasets.as_ref().is_none_or(|datasets| datasets.selects(instance.dataset()))
    }

    /// True when the answer shows some attribute of the entity; a retrieval that names attributes finds
    /// nothing otherwise (5.7.1.4).
    pub fn shows_any_attribute(&self, record: &Record) -> bool {
        record.instances().any(|instance| self.shows(instance, Some(&self.style.projection)))
    }

    #[inline]
    fn is_alive(&self, instance: Instance<'_>) -> bool {
        instance.expires().is_none_or(|at| at > self.now)
    }
}
