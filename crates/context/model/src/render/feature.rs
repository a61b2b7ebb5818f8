//! Entities as GeoJSON Features (4.5.16, 4.5.17).

use super::pen::{Pen, close};
use super::projection::Own;
use super::stamp::write_text;
use super::{Feature, Projection, concise};
use crate::record::{Instance, Kind, Record};

impl Pen<'_, '_> {
    /// `{"id":...,"type":"Feature","geometry":...,"properties":{...}}`; false when the projection leaves
    /// nothing of the entity.
    pub(super) fn feature(
        &mut self,
        feature: Feature,
        record: &Record,
        shown: Option<&Projection>,
        context: bool,
    ) -> bool {
        self.out.reserve(record.size() + 128);
        self.out.push(b'{');
        let start = self.out.len();
        if shown.is_none_or(|shown| shown.shows_own(Own::ID)) {
            self.out.extend_from_slice(br#""id":"#);
            write_text(self.out, record.id());
            self.out.push(b',');
        }
        let named = self.out.len() > start;
        self.out.extend_from_slice(br#""type":"Feature","geometry":"#);
        match self.geometry(feature, record, shown) {
            Some(instance) => self.out.extend_from_slice(instance.value_bytes()),
            None => self.out.extend_from_slice(b"null"),
        }
        self.out.extend_from_slice(br#","properties":{"#);
        let properties = self.out.len();
        self.body(record, shown);
        let any = named || self.out.len() > properties;
        close(self.out, b'}');
        self.out.push(b',');
        self.end_document(context);
        any
    }

    /// The instance whose value is the geometry (4.5.16.1): the default one, or the only one that is shown,
    /// or the first that the dataset filter names.
    fn geometry<'i>(
        &self,
        feature: Feature,
        record: &'i Record,
        shown: Option<&Projection>,
    ) -> Option<Instance<'i>> {
        let name = feature.geometry?;
        let mut candidates = record.attribute(name).filter(|instance| self.r.shows(*instance, shown));
        let first = candidates.next()?;
        let mut rest = candidates.peekable();
        let chosen = if first.dataset().is_none() || rest.peek().is_none() {
            first
        } else {
            let named = Some(first).filter(|_| self.r.style.datasets.is_some());
            rest.find(|instance| instance.dataset().is_none()).or(named)?
        };
        let geometric = chosen.kind() == Kind::GeoProperty && concise::is_geometry(chosen.value());
        geometric.then_some(chosen)
    }
}
