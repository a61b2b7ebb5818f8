//! Discovery of types and attributes (5.7.5 to 5.7.10), from the store's counters.

use std::collections::BTreeMap;

use trifid_context_model::name::shown;
use trifid_context_model::record::Kind;
use trifid_context_model::symbol::Symbol;

use super::provision::expand;
use super::{Broker, Call};
use crate::error::Error;
use crate::store::AttributeCount;

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
        let types = discovery.types.iter().copied();
        Ok(self.type_infos(types, discovery.attributes))
    }

    /// One type (5.7.7).
    pub async fn type_info(&self, call: Call<'_>, name: &str) -> Result<TypeInfo, Error> {
        let wanted = self.symbols().get(&expand(call, name)?);
        let mut discovery = self.store().discovery(call.tenant).await?;
        discovery.attributes.retain(|line| Some(line.entity_type) == wanted);
        let types = discovery.types.iter().copied().filter(|(own, _)| Some(*own) == wanted);
        let found = self.type_infos(types, discovery.attributes).pop();
        let refuse = || Error::ResourceNotFound(format!("no entity of type \"{}\" exists", shown(name)));
        found.ok_or_else(refuse)
    }

    fn type_infos(
        &self,
        types: impl Iterator<Item = (Symbol, usize)>,
        mut lines: Vec<AttributeCount>,
    ) -> Vec<TypeInfo> {
        let name = |symbol: Symbol| self.symbols().name(symbol);
        let info = |(entity_type, count)| {
            (name(entity_type), TypeInfo { entity_type, count, attributes: Vec::new() })
        };
        let mut by_name: BTreeMap<&str, TypeInfo> = types.map(info).collect();
        lines.sort_unstable_by_key(|line| (name(line.attribute), line.kind));
        for line in &lines {
            let Some(info) = by_name.get_mut(name(line.entity_type)) else { continue };
            match info.attributes.last_mut() {
                Some((last, kinds)) if *last == line.attribute => kinds.push(line.kind),
                _ => info.attributes.push((line.attribute, vec![line.kind])),
            }
        }
        by_name.into_values().collect()
    }

    /// All attributes, in order of name (5.7.8, 5.7.9).
    pub async fn attributes(&self, call: Call<'_>) -> Result<Vec<AttributeInfo>, Error> {
        let discovery = self.store().discovery(call.tenant).await?;
        let totals = discovery.totals.iter().copied();
        Ok(self.attribute_infos(totals, discovery.attributes))
    }

    /// One attribute (5.7.10).
    pub async fn attribute_info(&self, call: Call<'_>, name: &str) -> Result<AttributeInfo, Error> {
        let wanted = self.symbols().get(&expand(call, name)?);
        let mut discovery = self.store().discovery(call.tenant).await?;
        discovery.attributes.retain(|line| Some(line.attribute) == wanted);
        let totals = discovery.totals.iter().copied().filter(|(own, _)| Some(*own) == wanted);
        let found = self.attribute_infos(totals, discovery.attributes).pop();
        let refuse = || Error::ResourceNotFound(format!("no entity has an attribute \"{}\"", shown(name)));
        found.ok_or_else(refuse)
    }

    fn attribute_infos(
        &self,
        totals: impl Iterator<Item = (Symbol, usize)>,
        mut lines: Vec<AttributeCount>,
    ) -> Vec<AttributeInfo> {
        let name = |symbol: Symbol| self.symbols().name(symbol);
        let info = |(attribute, count)| {
            (name(attribute), AttributeInfo { attribute, count, kinds: Vec::new(), types: Vec::new() })
        };
        let mut by_name: BTreeMap<&str, AttributeInfo> = totals.map(info).collect();
        lines.sort_unstable_by_key(|line| (name(line.entity_type), line.kind));
        for line in &lines {
            let Some(info) = by_name.get_mut(name(line.attribute)) else { continue };
            if !info.kinds.contains(&line.kind) {
                info.kinds.push(line.kind);
            }
            // Lines of one type are neighbours.
            if info.types.last() != Some(&line.entity_type) {
                info.types.push(line.entity_type);
            }
        }
        by_name.into_values().collect()
    }
}
