//! Context information provision: entities and attributes one at a time (5.6.1 to 5.6.6, 5.6.17 to 5.6.19).

use trifid_context_model::input::{AttributeInput, EntityInput, Invalid, Mode};
use trifid_context_model::json::Value;
use trifid_context_model::query::types::Types;
use trifid_context_model::symbol::Symbol;
use trifid_context_model::update::{Merge, Which};

use super::{Broker, Call, check_id, check_same_id};
use crate::action::{Action, Applied, Op};
use crate::error::Error;

/// Parameters of a merge (6.5.3.4).
#[derive(Debug, Clone, Copy, Default)]
pub struct MergeOptions<'a> {
    /// `lang` and `observedAt`.
    pub merge: Merge<'a>,
    /// The fragment is in the simplified representation.
    pub simplified: bool,
}

/// Which instances of an attribute an operation means (6.7.3).
#[derive(Debug, Clone, Copy, Default)]
pub struct AttributeSelector<'a> {
    /// `datasetId`; the default instance without.
    pub dataset: Option<&'a str>,
    /// `deleteAll`.
    pub all: bool,
}

/// An attribute that an update left alone (5.2.19).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotUpdated {
    /// The attribute as the client spelled it.
    pub name: String,
    /// Why.
    pub reason: &'static str,
}

/// What an update of several attributes did (5.2.18).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpdateResult {
    /// Attributes written or removed.
    pub updated: Vec<Symbol>,
    /// Attributes left alone.
    pub not_updated: Vec<NotUpdated>,
}

impl From<Applied> for UpdateResult {
    fn from(applied: Applied) -> Self {
        let mut updated: Vec<Symbol> = applied.touched.iter().map(|touched| touched.name).collect();
        updated.dedup();
        let left = applied.not_updated.into_iter().map(|(name, reason)| NotUpdated { name, reason });
        UpdateResult { updated, not_updated: left.collect() }
    }
}

/// Input that may delete by the NGSI-LD Null.
const UPDATE: Mode = Mode { nulls: true, nested_nulls: false, simplified: false };
const CREATE: Mode = Mode { nulls: false, nested_nulls: false, simplified: false };

impl Broker {
    /// Create Entity (5.6.1); answers its identifier.
    pub async fn create_entity(&self, call: Call<'_>, value: Value<'_>) -> Result<String, Error> {
        let input = self.entity(call, value, CREATE)?;
        let id = input.id.clone().ok_or_else(|| Invalid::new("is missing").at("id"))?;
        check_id(&id)?;
        let answer = id.clone().into_owned();
        self.write_one(call, Op { id, gate: None, action: Action::Create(input) }).await?;
        Ok(answer)
    }

    /// Replace Entity (5.6.18).
    pub async fn replace_entity(
        &self,
        call: Call<'_>,
        id: &str,
        value: Value<'_>,
        gate: Option<&Types>,
        simplified: bool,
    ) -> Result<(), Error> {
        let input = self.entity_at(call, id, value, Mode { simplified, ..CREATE })?;
        self.change(call, id, gate, Action::Replace(input)).await?;
        Ok(())
    }

    /// Merge Entity (5.6.17).
    pub async fn merge_entity(
        &self,
        call: Call<'_>,
        id: &str,
        value: Value<'_>,
        gate: Option<&Types>,
        options: MergeOptions<'_>,
    ) -> Result<(), Error> {
        let mode = Mode { nulls: true, nested_nulls: true, simplified: options.simplified };
        let input = self.entity_at(call, id, value, mode)?;
        self.change(call, id, gate, Action::Merge(input, options.merge)).await?;
        Ok(())
    }

    /// Delete Entity (5.6.6).
    pub async fn delete_entity(&self, call: Call<'_>, id: &str, gate: Option<&Types>) -> Result<(), Error> {
        check_id(id)?;
        self.change(call, id, gate, Action::Delete).await?;
        Ok(())
    }

    /// Append Attributes (5.6.3).
    pub async fn append_attributes(
        &self,
        call: Call<'_>,
        id: &str,
        value: Value<'_>,
        gate: Option<&Types>,
        no_overwrite: bool,
    ) -> Result<UpdateResult, Error> {
        let input = self.entity_at(call, id, value, CREATE)?;
        Ok(self.change(call, id, gate, Action::Append(input, no_overwrite)).await?.into())
    }

    /// Update Attributes (5.6.2).
    pub async fn update_attributes(
        &self,
        call: Call<'_>,
        id: &str,
        value: Value<'_>,
        gate: Option<&Types>,
    ) -> Result<UpdateResult, Error> {
        let input = self.entity_at(call, id, value, UPDATE)?;
        Ok(self.change(call, id, gate, Action::Update(input)).await?.into())
    }

    /// Partial Attribute Update (5.6.4).
    pub async fn partial_update(
        &self,
        call: Call<'_>,
        id: &str,
        attribute: &str,
        value: Value<'_>,
        gate: Option<&Types>,
    ) -> Result<(), Error> {
        let mut instances = self.attribute_at(call, id, attribute, value, UPDATE)?;
        let (Some(instance), true) = (instances.pop(), instances.is_empty()) else {
            return Err(Invalid::new("must be one attribute fragment").at(attribute).into());
        };
        self.change(call, id, gate, Action::PartialUpdate(instance)).await?;
        Ok(())
    }

    /// Replace Attribute (5.6.19).
    pub async fn replace_attribute(
        &self,
        call: Call<'_>,
        id: &str,
        attribute: &str,
        value: Value<'_>,
        gate: Option<&Types>,
    ) -> Result<(), Error> {
        let instances = self.attribute_at(call, id, attribute, value, CREATE)?;
        self.change(call, id, gate, Action::ReplaceAttribute(instances)).await?;
        Ok(())
    }

    /// Delete Attribute (5.6.5); `scope` deletes the entity's scopes.
    pub async fn delete_attribute(
        &self,
        call: Call<'_>,
        id: &str,
        attribute: &str,
        which: AttributeSelector<'_>,
        gate: Option<&Types>,
    ) -> Result<(), Error> {
        check_id(id)?;
        let action = if attribute == "scope" {
            Action::DeleteScope
        } else {
            let name = self.symbols().get(&expand(call, attribute)?);
            let unknown = || Error::ResourceNotFound(format!("the entity has no attribute \"{attribute}\""));
            Action::DeleteAttribute(name.ok_or_else(unknown)?, attribute, which.into())
        };
        self.change(call, id, gate, action).await?;
        Ok(())
    }

    /// Reads an entity or fragment that is for the entity `id`.
    fn entity_at<'v>(
        &self,
        call: Call<'_>,
        id: &str,
        value: Value<'v>,
        mode: Mode,
    ) -> Result<EntityInput<'v>, Error> {
        check_id(id)?;
        let input = self.entity(call, value, mode)?;
        check_same_id(id, &input)?;
        Ok(input)
    }

    /// Reads the fragment of one attribute of the entity `id`.
    fn attribute_at<'v>(
        &self,
        call: Call<'_>,
        id: &str,
        attribute: &'v str,
        value: Value<'v>,
        mode: Mode,
    ) -> Result<Vec<AttributeInput<'v>>, Error> {
        check_id(id)?;
        check_is_attribute(attribute)?;
        self.attribute(call, attribute, value, mode)
    }

    /// Applies one change to the entity `id`.
    async fn change(
        &self,
        call: Call<'_>,
        id: &str,
        gate: Option<&Types>,
        action: Action<'_>,
    ) -> Result<Applied, Error> {
        self.write_one(call, Op { id: id.into(), gate, action }).await
    }
}

impl<'a> From<AttributeSelector<'a>> for Which<'a> {
    fn from(selector: AttributeSelector<'a>) -> Self {
        match selector {
            AttributeSelector { all: true, .. } => Which::All,
            AttributeSelector { dataset: Some(id), .. } => Which::Dataset(id),
            AttributeSelector { dataset: None, all: false } => Which::Default,
        }
    }
}

/// The expanded name of an attribute that a path names.
pub(super) fn expand(call: Call<'_>, attribute: &str) -> Result<String, Error> {
    if !trifid_context_model::name::is_name(attribute) {
        return Err(Error::BadRequestData(format!(
            "\"{}\" is not an attribute name (4.6.2)",
            trifid_context_model::name::shown(attribute)
        )));
    }
    let expanded =
        call.context.expand(attribute).map_err(|error| Error::BadRequestData(error.to_string()))?;
    Ok(expanded.into_owned())
}

/// Members of the entity itself cannot be changed as attributes (5.6.4.4).
fn check_is_attribute(name: &str) -> Result<(), Error> {
    if matches!(name, "id" | "type" | "scope" | "@id" | "@type" | "@context") {
        let reason = format!("\"{name}\" is no attribute and cannot be changed as one (5.6.4)");
        return Err(Error::BadRequestData(reason));
    }
    Ok(())
}
