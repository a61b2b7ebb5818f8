//! Which members of an entity an answer shows: `pick`, `omit` and `attrs` (4.21, 5.7.1, 5.7.2), bound to
//! symbols once a request, so that each attribute costs a comparison of integers.

use smallvec::SmallVec;

use crate::query::names::Member;
use crate::query::project::Members;
use crate::symbol::{Symbol, Symbols};

/// The members of an entity that are no attributes, as a set of bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Own(u8);

impl Own {
    pub(super) const ID: Own = Own(1);
    pub(super) const TYPE: Own = Own(2);
    pub(super) const SCOPE: Own = Own(4);
    pub(super) const CREATED: Own = Own(8);
    pub(super) const MODIFIED: Own = Own(16);
    pub(super) const EXPIRES: Own = Own(32);
    const ALL: Own = Own(63);

    /// The members that `members` names.
    fn named(members: &Members) -> Own {
        let system = [
            (Own::SCOPE, Member::Scope),
            (Own::CREATED, Member::CreatedAt),
            (Own::MODIFIED, Member::ModifiedAt),
            (Own::EXPIRES, Member::ExpiresAt),
        ];
        let mut named = Own::default();
        if members.has_id() {
            named = named.with(Own::ID);
        }
        if members.has_type() {
            named = named.with(Own::TYPE);
        }
        for (own, member) in system {
            if members.has_member(member) {
                named = named.with(own);
            }
        }
        named
    }

    fn with(self, other: Own) -> Own {
        Own(self.0 | other.0)
    }

    fn without(self, other: Own) -> Own {
        Own(self.0 & !other.0)
    }

    fn has(self, other: Own) -> bool {
        self.0 & other.0 != 0
    }
}

/// A projection bound to symbols. The default one shows everything.
#[derive(Debug, Clone, Default)]
pub struct Projection {
    /// Members that are no attributes and not shown.
    hidden: Own,
    /// The only attributes shown.
    only: Option<SmallVec<[Symbol; 8]>>,
    /// Attributes not shown.
    except: SmallVec<[Symbol; 4]>,
    /// What is shown of the entities that a relationship leads to, where that differs from all.
    linked: Vec<(Symbol, Projection)>,
}

impl Projection {
    /// Shows what `pick` names and `omit` does not (4.21).
    ///
    /// A name without a symbol is one that no entity has, so it is left out. A projection that outlives the
    /// request must be bound anew when names have come. System attributes of the entity are shown besides
    /// picked members only when they are picked too: an entity is reduced to what is named (5.7.1.5).
    pub fn new(pick: Option<&Members>, omit: Option<&Members>, symbols: &Symbols) -> Self {
        let kept = pick.map_or(Own::ALL, Own::named);
        let dropped = omit.map(Own::named).unwrap_or_default();
        let omitted = omit.into_iter().flat_map(|omit| attributes(omit, symbols));
        let mut projection = Projection {
            hidden: Own::ALL.without(kept.without(dropped)),
            only: pick.map(|pick| attributes(pick, symbols).map(|(name, _)| name).collect()),
            except: omitted.filter(|(_, nested)| nested.is_none()).map(|(name, _)| name).collect(),
            linked: Vec::new(),
        };
        for (name, _) in [pick, omit].into_iter().flatten().flat_map(|members| attributes(members, symbols)) {
            projection.link(name, pick, omit, symbols);
        }
        projection
    }

    fn link(&mut self, name: Symbol, pick: Option<&Members>, omit: Option<&Members>, symbols: &Symbols) {
        let pick = pick.and_then(|pick| pick.attribute(name, symbols)).flatten();
        let omit = omit.and_then(|omit| omit.attribute(name, symbols)).flatten();
        if (pick.is_some() || omit.is_some()) && self.linked(name).is_none() {
            self.linked.push((name, Projection::new(pick, omit, symbols)));
        }
    }

    /// Shows the attributes that `attrs` names and every other member of the entity.
    pub fn of_attributes(attrs: &Members, symbols: &Symbols) -> Self {
        let only = attributes(attrs, symbols).map(|(name, _)| name).collect();
        Projection { only: Some(only), ..Projection::default() }
    }

    /// True when the attribute `name` is shown.
    #[inline]
    pub fn shows(&self, name: Symbol) -> bool {
        !self.except.contains(&name) && self.only.as_ref().is_none_or(|only| only.contains(&name))
    }

    /// What is shown of the entities that the relationship `name` leads to; `None` is all.
    pub fn linked(&self, name: Symbol) -> Option<&Projection> {
        self.linked.iter().find(|(own, _)| *own == name).map(|(_, projection)| projection)
    }

    pub(super) fn shows_own(&self, member: Own) -> bool {
        !self.hidden.has(member)
    }
}

/// The attributes that `members` names, as far as some entity has them, with the projection behind each.
fn attributes<'m>(
    members: &'m Members,
    symbols: &'m Symbols,
) -> impl Iterator<Item = (Symbol, Option<&'m Members>)> {
    let known = members.attributes().filter_map(|name| name.symbol(symbols));
    known.map(|name| (name, members.attribute(name, symbols).flatten()))
}
