//! Discovery of types and attributes (5.7.5 to 5.7.10), from the store's counters.

use std::collections::BTreeMap;

use trifid_context_model::record::Kind;
use trifid_context_model::symbol::Symbol;

use super::provision::expand;
use super::{Broker, Call};
use crate::error::Error;
use crate::store::Discovery;

/// The types that exist, by name (5.2.24).
pub type TypeList = Vec<Symbol>;

/// A type in detail (5.2.25, 5.2.26).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeInfo {
    /// The type.
    pub entity_type: Symbol,
    /// Entities of it.
    pub count: usize,
    /// Their attributes, each with the kinds it has.
    pub attributes: Vec<(Symbol, Vec<Kind>)>,
}

/// An attribute in detail (5.2.28).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeInfo {
    /// The attribute.
    pub attribute: Symbol,
    /// Entities that have it.
    pub count: usize,
    /// The kinds it has.
    pub kinds: Vec<Kind>,
    /// The types whose entities have it.
    pub types: Vec<Symbol>,
}

impl Broker {
    /// All types, in order of name (5.7.5, 5.7.6).
    pub async fn types(&self, call: Call<'_>) -> Result<Vec<TypeInfo>, Error> {
        let discovery = self.store().discovery(call.tenant).await?;
        let mut types: Vec<_> =
            discovery.types.iter().map(|(name, count)| type_info(&discovery, *name, *count)).collect();
        types.sort_by_key(|info| self.symbols().name(info.entity_type));
        for info in &mut types {
            info.attributes.sort_by_key(|(name, _)| self.symbols().name(*name));
        }
        Ok(types)
    }

    /// One type (5.7.7).
    pub async fn type_info(&self, call: Call<'_>, name: &str) -> Result<TypeInfo, Error> {
        let wanted = self.symbols().get(&expand(call, name)?);
        let types = self.types(call).await?;
        let found = types.into_iter().find(|info| Some(info.entity_type) == wanted);
        found.ok_or_else(|| Error::ResourceNotFound(format!("no entity of type \"{name}\" exists")))
    }

    /// All attributes, in order of name (5.7.8, 5.7.9).
    pub async fn attributes(&self, call: Call<'_>) -> Result<Vec<AttributeInfo>, Error> {
        let discovery = self.store().discovery(call.tenant).await?;
        let mut by_name: BTreeMap<&str, AttributeInfo> = BTreeMap::new();
        for (attribute, count) in &discovery.totals {
            let info =
                AttributeInfo { attribute: *attribute, count: *count, kinds: Vec::new(), types: Vec::new() };
            by_name.insert(self.symbols().name(*attribute), info);
        }
        let mut lines = discovery.attributes.clone();
        lines.sort_by_key(|line| (self.symbols().name(line.entity_type), line.kind));
        for line in &lines {
            let Some(info) = by_name.get_mut(self.symbols().name(line.attribute)) else { continue };
            push_new(&mut info.kinds, line.kind);
            push_new(&mut info.types, line.entity_type);
        }
        Ok(by_name.into_values().collect())
    }

    /// One attribute (5.7.10).
    pub async fn attribute_info(&self, call: Call<'_>, name: &str) -> Result<AttributeInfo, Error> {
        let wanted = self.symbols().get(&expand(call, name)?);
        let attributes = self.attributes(call).await?;
        let found = attributes.into_iter().find(|info| Some(info.attribute) == wanted);
        found.ok_or_else(|| Error::ResourceNotFound(format!("no entity has an attribute \"{name}\"")))
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

fn type_info(discovery: &Discovery, entity_type: Symbol, count: usize) -> TypeInfo {
    let mut attributes: BTreeMap<Symbol, Vec<Kind>> = BTreeMap::new();
    for line in discovery.attributes.iter().filter(|line| line.entity_type == entity_type) {
        push_new(attributes.entry(line.attribute).or_default(), line.kind);
    }
    for kinds in attributes.values_mut() {
        kinds.sort_unstable();
    }
    TypeInfo { entity_type, count, attributes: attributes.into_iter().collect() }
}
