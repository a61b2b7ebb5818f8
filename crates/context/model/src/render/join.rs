//! Linked entity retrieval (4.5.23): the entities that relationships lead to, inside the answer or behind it.
//!
//! Walking stops at `joinLevel`, at an identifier that was met before (5.7.1.5) or that `containedBy` names,
//! and at a bound on the number of entities looked up, so that no graph makes an answer endless. Only the
//! relationships of an entity itself are followed, not those of its attributes. A relationship that names
//! types in `objectType` leads to entities of one of these alone.

use hashbrown::HashSet;
use smallvec::SmallVec;

use super::pen::{Pen, Place, close};
use super::{Projection, Renderer, scan};
use crate::record::{Instance, Kind, Record, Slot};

/// Finds an entity by its identifier.
pub type Resolve<'j> = dyn FnMut(&str) -> Option<Record> + 'j;

/// One request's walk along relationships.
pub struct Join<'j> {
    resolve: &'j mut Resolve<'j>,
    levels: usize,
    depth: usize,
    budget: usize,
    contained_by: HashSet<String>,
    met: HashSet<String>,
}

impl std::fmt::Debug for Join<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Join")
            .field("levels", &self.levels)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl<'j> Join<'j> {
    /// A walk of `levels` steps (`joinLevel`) that looks up at most `budget` entities in the whole answer.
    pub fn new(levels: usize, budget: usize, resolve: &'j mut Resolve<'j>) -> Self {
        Join { resolve, levels, depth: 0, budget, contained_by: HashSet::new(), met: HashSet::new() }
    }

    /// Entities met before this request: they are not entered (`containedBy`).
    #[must_use]
    pub fn contained_by(mut self, ids: impl IntoIterator<Item = String>) -> Self {
        self.contained_by.extend(ids);
        self
    }

    /// Starts over at `roots`.
    pub(super) fn begin<'a>(&mut self, roots: impl IntoIterator<Item = &'a Record>) {
        self.depth = 0;
        self.met.clear();
        self.met.extend(roots.into_iter().map(|record| record.id().to_owned()));
    }

    /// The entity that `token`, a quoted identifier, leads to from `instance`.
    fn follow(&mut self, renderer: &Renderer<'_>, instance: Instance<'_>, token: &str) -> Option<Record> {
        let id = scan::unquote(token);
        if self.contained_by.contains(id.as_ref()) || self.met.contains(id.as_ref()) {
            return None;
        }
        self.budget = self.budget.checked_sub(1)?;
        let record = (self.resolve)(&id)?;
        if record.expires().is_some_and(|at| at <= renderer.now) || !has_object_type(instance, &record) {
            return None;
        }
        self.met.insert(id.into_owned());
        Some(record)
    }
}

/// The record has one of the types that the relationship names, or it names none.
fn has_object_type(instance: Instance<'_>, record: &Record) -> bool {
    let mut named =
        instance.slots().filter(|(slot, _)| *slot == Slot::ObjectType).map(|(_, symbol)| symbol).peekable();
    named.peek().is_none() || named.any(|symbol| record.types().any(|own| own == symbol))
}

/// An entity found by [`Renderer::linked`].
#[derive(Debug, Clone)]
pub struct Linked<'p> {
    /// The entity.
    pub record: Record,
    /// What is shown of it; `None` is all.
    pub projection: Option<&'p Projection>,
}

impl<'r> Renderer<'r> {
    /// The entities that `roots` lead to, each once, level by level: the flattened form appends them to the
    /// roots (4.5.23.3).
    pub fn linked(&self, roots: &[Record], join: &mut Join<'_>) -> Vec<Linked<'r>> {
        join.begin(roots);
        let mut found: Vec<Linked<'r>> = Vec::new();
        let own = Some(&self.style.projection);
        roots.iter().for_each(|record| self.links(record, own, join, &mut found));
        let mut from = 0;
        for _ in 1..join.levels {
            let to = found.len();
            for at in from..to {
                let Linked { record, projection } = found[at].clone();
                self.links(&record, projection, join, &mut found);
            }
            from = to;
        }
        found
    }

    /// Adds the entities one step away from `record`.
    fn links(
        &self,
        record: &Record,
        shown: Option<&'r Projection>,
        join: &mut Join<'_>,
        found: &mut Vec<Linked<'r>>,
    ) {
        if join.levels == 0 {
            return;
        }
        for instance in
            record.instances().filter(|own| own.kind().is_relationship() && self.shows(*own, shown))
        {
            let projection = shown.and_then(|shown| shown.linked(instance.name()));
            for token in scan::strings(instance.value()) {
                if let Some(record) = join.follow(self, instance, token) {
                    found.push(Linked { record, projection });
                }
            }
        }
    }
}

/// Entities found for one relationship, each with its target token.
type Targets<'v> = SmallVec<[(&'v str, Option<Record>); 2]>;

impl Pen<'_, '_> {
    /// The targets of a relationship, followed where the walk goes on from here.
    fn targets<'v>(&mut self, instance: Instance<'v>, place: Place<'_>) -> Targets<'v> {
        let renderer = self.r;
        let mut join = self.join.as_deref_mut().filter(|join| join.depth < join.levels);
        if let Place::Attribute = place {
            join = None;
        }
        let follow = |token| (token, join.as_mut().and_then(|join| join.follow(renderer, instance, token)));
        scan::strings(instance.value()).map(follow).collect()
    }

    /// An entity one level deeper.
    fn inner(&mut self, record: &Record, instance: Instance<'_>, place: Place<'_>) {
        let projection = match place {
            Place::Entity(shown) => shown.and_then(|shown| shown.linked(instance.name())),
            Place::Attribute => None,
        };
        self.step(1);
        self.entity(record, projection, false);
        self.step(-1);
    }

    fn step(&mut self, by: isize) {
        if let Some(join) = self.join.as_deref_mut() {
            join.depth = join.depth.saturating_add_signed(by);
        }
    }

    /// `,"entity":{...}` or `,"entityList":[...]` behind the members of a relationship (4.5.23.2); nothing
    /// when no target is found.
    pub(super) fn joined_member(&mut self, instance: Instance<'_>, place: Place<'_>) {
        let targets = self.targets(instance, place);
        if targets.iter().all(|(_, record)| record.is_none()) {
            return;
        }
        let list = instance.kind() == Kind::ListRelationship;
        self.out.extend_from_slice(if list { br#","entityList":"# } else { br#","entity":"# });
        let several = is_list(instance);
        if several {
            self.out.push(b'[');
        }
        for record in targets.iter().filter_map(|(_, record)| record.as_ref()) {
            self.inner(record, instance, place);
            self.out.push(b',');
        }
        if several { close(self.out, b']') } else { self.out.truncate(self.out.len() - 1) }
    }

    /// The value of a relationship with the entities found in the place of their identifiers (4.5.4).
    pub(super) fn joined_value(&mut self, instance: Instance<'_>, place: Place<'_>) {
        let several = is_list(instance);
        if several {
            self.out.push(b'[');
        }
        for (token, record) in self.targets(instance, place) {
            match record {
                Some(record) => self.inner(&record, instance, place),
                None => self.out.extend_from_slice(token.as_bytes()),
            }
            self.out.push(b',');
        }
        if several { close(self.out, b']') } else { self.out.truncate(self.out.len() - 1) }
    }
}

fn is_list(instance: Instance<'_>) -> bool {
    instance.value_bytes().first() == Some(&b'[')
}
