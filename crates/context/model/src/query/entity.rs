//! All that selects entities, as one compiled object: the single place that decides whether an entity
//! matches (5.7.2.4).

use super::dataset::DatasetIds;
use super::geo::{Bounds, GeoQuery};
use super::names::Name;
use super::pattern::Pattern;
use super::q::{Compiled, Env};
use super::scope::ScopeQuery;
use super::types::Types;
use crate::record::Record;
use crate::symbol::{Symbol, Symbols};

/// Which entities by identifier and type: the parameters `id`, `idPattern` and `type`, or an EntitySelector
/// (5.2.33). What is absent selects everything. Everything present must hold; an EntitySelector's `id` takes
/// precedence over its `idPattern`, so its reader leaves the pattern out when there are ids.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selector {
    ids: Option<Box<[Box<str>]>>,
    pattern: Option<Pattern>,
    types: Option<Types>,
}

impl Selector {
    /// A selector of the given parts.
    pub fn new(ids: Option<Vec<Box<str>>>, pattern: Option<Pattern>, types: Option<Types>) -> Self {
        let sorted = |mut ids: Vec<Box<str>>| {
            ids.sort_unstable();
            ids.dedup();
            ids.into()
        };
        Selector { ids: ids.map(sorted), pattern, types }
    }

    /// True when `record` is selected.
    pub fn matches(&self, record: &Record, symbols: &Symbols) -> bool {
        let listed = |ids: &[Box<str>]| ids.binary_search_by(|id| (**id).cmp(record.id())).is_ok();
        self.ids.as_deref().is_none_or(listed)
            && self.types.as_ref().is_none_or(|types| types.matches(record.types(), symbols))
            && self.pattern.as_ref().is_none_or(|pattern| pattern.matches(record.id()))
    }
}

/// A filter over entities.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    /// One of these must select the entity; none means every entity.
    pub selectors: Vec<Selector>,
    /// The entity must have one of these attributes (`attrs`).
    pub attributes: Option<Vec<Name>>,
    /// The query `q` must hold.
    pub q: Option<Compiled>,
    /// The geo-query must hold.
    pub geo: Option<GeoQuery>,
    /// The scope query must hold.
    pub scope: Option<ScopeQuery>,
    /// The instances that `q` is about, when the request addresses some (4.9, 4.5.5).
    pub datasets: Option<DatasetIds>,
}

/// What an index may use to find candidates. Each part is necessary for a match, all together are not
/// sufficient: the candidates still go through [`Filter::matches`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hints {
    /// Nothing can match, since a name in the filter has never been written.
    pub nothing: bool,
    /// Matches have one of these identifiers.
    pub ids: Option<Vec<Box<str>>>,
    /// Matches have one of these types.
    pub types: Option<Vec<Symbol>>,
    /// Matches have every one of these attributes.
    pub attributes: Vec<Symbol>,
    /// Matches have at least one of these attributes.
    pub some_attribute: Option<Vec<Symbol>>,
    /// Matches have a geometry of this property that has a point in common with this area.
    pub area: Option<(Symbol, Bounds)>,
}

impl Filter {
    /// True when `record` satisfies every part of the filter, cheapest part first.
    pub fn matches(&self, record: &Record, env: &Env<'_>) -> bool {
        let has = |name: &Name| name.symbol(env.symbols).is_some_and(|symbol| record.has(symbol));
        (self.selectors.is_empty() || self.selectors.iter().any(|own| own.matches(record, env.symbols)))
            && self.attributes.as_ref().is_none_or(|names| names.iter().any(has))
            && self.scope.as_ref().is_none_or(|scope| scope.matches(record.scopes()))
            && self.q.as_ref().is_none_or(|q| q.matches(record, env, self.datasets.as_ref()))
            && self.geo.as_ref().is_none_or(|geo| geo.matches(record, env.symbols))
    }

    /// What an index may use; valid until new names are introduced.
    pub fn hints(&self, symbols: &Symbols) -> Hints {
        let mut hints = Hints::default();
        if !self.selectors.is_empty() {
            hints.ids = union(self.selectors.iter().map(|own| own.ids.as_deref().map(<[_]>::to_vec)));
            hints.types = union(self.selectors.iter().map(|own| own.types.as_ref()?.candidates(symbols)));
        }
        if let Some(names) = &self.attributes {
            hints.some_attribute = Some(names.iter().filter_map(|name| name.symbol(symbols)).collect());
        }
        match self.q.as_ref().map(|q| q.required(symbols)) {
            Some(None) => hints.nothing = true,
            Some(Some(required)) => hints.attributes = required,
            None => {}
        }
        if let Some(geo) = &self.geo {
            hints.add_geo(geo, symbols);
        }
        let empty = |list: &Option<Vec<Symbol>>| list.as_ref().is_some_and(Vec::is_empty);
        hints.nothing |= empty(&hints.types) || empty(&hints.some_attribute);
        hints
    }
}

impl Hints {
    fn add_geo(&mut self, geo: &GeoQuery, symbols: &Symbols) {
        let Some(property) = geo.property(symbols) else {
            self.nothing = true;
            return;
        };
        if !self.attributes.contains(&property) {
            self.attributes.push(property);
        }
        self.area = geo.geo().area().map(|area| (property, area));
    }
}

/// The union of lists; `None`, which stands for everything, when one of them is everything.
fn union<T: Ord>(lists: impl Iterator<Item = Option<Vec<T>>>) -> Option<Vec<T>> {
    let mut all: Vec<T> = lists.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    all.sort_unstable();
    all.dedup();
    Some(all)
}

#[cfg(test)]
mod tests;
