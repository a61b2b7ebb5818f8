//! What a client sends, parsed and expanded: entities, entity fragments and attribute fragments
//! (4.5.2 to 4.5.5, 4.5.18 to 4.5.24).
//!
//! One typed form serves every operation. A full attribute has a value; a fragment may lack it; a member may
//! be removed where the operation allows the NGSI-LD Null (5.5.4). Values stay slices of the request where
//! the request has no white space to remove. Normalized and concise input are told apart member by member,
//! so both are accepted everywhere; simplified input (4.5.4) is asked for by [`Mode::simplified`].

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::name::shown;
use crate::record::{Kind, Slot};
use crate::symbol::Symbol;
use crate::time::Instant;

mod reader;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use reader::check_companions;
pub use reader::{Mode, Reader};
pub use value::holds_null;

/// Why an input is refused; becomes `BadRequestData` (5.5.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Where: member names from the outside in.
    path: Vec<String>,
    /// What is wrong, and what would be right.
    reason: Cow<'static, str>,
}

impl Invalid {
    /// A refusal of the value at hand.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Invalid { path: Vec::new(), reason: reason.into() }
    }

    /// The same refusal seen from the member `name` outside.
    #[must_use]
    pub fn at(mut self, name: &str) -> Self {
        self.path.insert(0, shown(name));
        self
    }
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.reason);
        }
        write!(f, "{}: {}", self.path.join("."), self.reason)
    }
}

impl std::error::Error for Invalid {}

/// What an input says of an optional member.
#[derive(Debug, Clone, PartialEq)]
pub enum Change<T> {
    /// It does not mention it.
    Keep,
    /// It deletes it (NGSI-LD Null).
    Remove,
    /// It sets it.
    Set(T),
}

impl<T> Change<T> {
    /// The value set, if any.
    pub fn set(self) -> Option<T> {
        match self {
            Change::Set(value) => Some(value),
            Change::Keep | Change::Remove => None,
        }
    }

    /// True unless the member is left alone.
    pub fn is_mentioned(&self) -> bool {
        !matches!(self, Change::Keep)
    }

    /// Applies the change to a stored member.
    pub fn apply_to(self, member: &mut Option<T>) {
        match self {
            Change::Keep => {}
            Change::Remove => *member = None,
            Change::Set(value) => *member = Some(value),
        }
    }
}

/// An Entity or an Entity Fragment (5.2.4, 5.5.12).
#[derive(Debug)]
pub struct EntityInput<'a> {
    /// The identifier, where the input has one.
    pub id: Option<Cow<'a, str>>,
    /// The types, expanded; empty where the input has none.
    pub types: SmallVec<[Symbol; 2]>,
    /// The scopes.
    pub scopes: Change<Vec<Cow<'a, str>>>,
    /// `expiresAt` (4.22).
    pub expires: Change<Instant>,
    /// The attributes, one entry an instance, those of one name together.
    pub attributes: Vec<AttributeInput<'a>>,
}

/// One attribute instance of an input.
#[derive(Debug, Clone)]
pub struct AttributeInput<'a> {
    /// The attribute's name, expanded.
    pub name: Symbol,
    /// The name as the client spelled it, for messages and `updated` lists.
    pub spelled: Cow<'a, str>,
    /// `datasetId`; `None` is the default instance.
    pub dataset: Option<Cow<'a, str>>,
    /// What is said of the instance.
    pub content: Content<'a>,
}

/// What an input says of one attribute instance.
#[derive(Debug, Clone)]
pub enum Content<'a> {
    /// Delete it (its value is the NGSI-LD Null).
    Remove,
    /// Its members.
    Set(Box<InstanceInput<'a>>),
}

/// The members of one attribute instance, as far as the input has them.
#[derive(Debug, Clone)]
pub struct InstanceInput<'a> {
    /// The kind that the member `type` names, or that the value shows (concise).
    pub kind: Option<Kind>,
    /// `type` was written out.
    pub kind_is_explicit: bool,
    /// The value came bare, without a wrapper: on a merge it goes where the stored kind keeps its value.
    pub bare: bool,
    /// The value as minified JSON text, vocabulary expanded, `objectList` in object form.
    pub value: Option<Cow<'a, str>>,
    /// `observedAt` with its spelling.
    pub observed: Change<(Instant, Cow<'a, str>)>,
    /// `expiresAt`.
    pub expires: Change<Instant>,
    /// `unitCode` as JSON text.
    pub unit_code: Change<Cow<'a, str>>,
    /// `entityIdSealed` as JSON text.
    pub sealed_id: Change<Cow<'a, str>>,
    /// `objectType`, `valueType`, `entityTypeSealed`, where mentioned.
    pub slots: SmallVec<[(Slot, Change<Symbol>); 1]>,
    /// Sub-attributes.
    pub subs: Vec<AttributeInput<'a>>,
}

impl Default for InstanceInput<'_> {
    fn default() -> Self {
        InstanceInput {
            kind: None,
            kind_is_explicit: false,
            bare: false,
            value: None,
            observed: Change::Keep,
            expires: Change::Keep,
            unit_code: Change::Keep,
            sealed_id: Change::Keep,
            slots: SmallVec::new(),
            subs: Vec::new(),
        }
    }
}
