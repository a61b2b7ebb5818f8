//! What one select has in sight: its relations, the columns that joins made one, and its own select list.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::ast;
use crate::catalogue::Name;
use crate::span::Span;
use crate::tree::{Aggregate, ColumnRef, Expr, Relation};
use crate::types::Field;

/// Columns beyond which a name is not sought twice.
const WIDE: usize = 256;

/// A select while its expressions are understood.
#[derive(Default)]
pub(super) struct Scope {
    /// The leaves of FROM, as names see them; one for each of `relations`.
    pub(super) leaves: Vec<Leaf>,
    /// The leaves of FROM, as the tree has them.
    pub(super) relations: Vec<Relation>,
    /// Columns that USING and NATURAL made of two.
    pub(super) merged: Vec<Merged>,
    /// How the leaves are joined, for `*`.
    pub(super) shape: Option<Shape>,
    /// The leaves that can be named: in an ON those of its join.
    pub(super) visible: Range<usize>,
    /// What the place belongs to.
    pub(super) clause: Clause,
    /// Whether the place is in an argument of an aggregate.
    pub(super) in_aggregate: bool,
    /// The aggregates so far.
    pub(super) aggregates: Vec<Aggregate>,
    /// Columns of this select and where they were named, of what may be grouped: to blame the right place.
    pub(super) named: Vec<(ColumnRef, Span)>,
    /// What names without a qualifier meant before, where there are many columns to seek them among.
    pub(super) known: HashMap<Name, Place>,
    /// The select list, once it is there: GROUP BY, HAVING and ORDER BY may name it.
    pub(super) outputs: Vec<Output>,
}

/// A leaf of FROM.
pub(super) struct Leaf {
    /// The alias, or the table's name; a derived table may have none.
    pub(super) name: Option<Arc<str>>,
    /// The schema, if the leaf is a table without an alias.
    pub(super) schema: Option<Arc<str>>,
    /// The table's own name, for messages.
    pub(super) table: Option<Arc<str>>,
    /// The columns, under the names that they have here.
    pub(super) fields: Arc<[Field]>,
}

/// A column that a join made of two of one name.
pub(super) struct Merged {
    /// What it says of itself; the left one's name.
    pub(super) field: Field,
    /// Its value: one of the two, or the first of them that is there.
    pub(super) expr: Expr,
    /// The leaves of the join: their columns of the name are not seen without a qualifier.
    pub(super) leaves: Range<usize>,
    /// Whether a join further up merged it again.
    pub(super) superseded: bool,
}

/// The joins, as `*` sees them.
pub(super) enum Shape {
    Leaf(usize),
    Pair {
        left: Box<Shape>,
        right: Box<Shape>,
        /// Places in [`Scope::merged`].
        merged: Vec<usize>,
    },
}

/// The parts of a select, as far as rules differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Clause {
    #[default]
    On,
    Where,
    Items,
    Group,
    Having,
    Order,
}

impl Clause {
    /// Its words, where an aggregate cannot stand in it.
    pub(super) const fn without_aggregates(self) -> Option<&'static str> {
        match self {
            Self::On => Some("ON"),
            Self::Where => Some("WHERE"),
            Self::Group => Some("GROUP BY"),
            Self::Items | Self::Having | Self::Order => None,
        }
    }

    /// Whether it comes after grouping.
    pub(super) const fn is_grouped(self) -> bool {
        matches!(self, Self::Items | Self::Having | Self::Order)
    }

    /// Whether names may mean items of the select list.
    pub(super) const fn sees_items(self) -> bool {
        matches!(self, Self::Group | Self::Having | Self::Order)
    }
}

/// An item of the select list.
pub(super) struct Output {
    pub(super) expr: Expr,
    /// The alias, or the column's own name, or one that was made up.
    pub(super) name: Arc<str>,
    /// Whether the name is an alias.
    pub(super) aliased: bool,
    /// What the result column says of itself; `None` for a column, which says what it did.
    pub(super) field: Option<Box<Field>>,
    pub(super) span: Span,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Column(ColumnRef),
    /// A merged column of the select so many further out.
    Merged {
        depth: u16,
        index: usize,
    },
    /// An item of the select list.
    Output(usize),
}

/// What was found for a name.
pub(super) enum Found {
    Nothing,
    One(Place),
    Several,
}

impl Found {
    fn and(self, place: Place) -> Self {
        match self {
            Self::Nothing => Self::One(place),
            Self::One(_) | Self::Several => Self::Several,
        }
    }
}

/// The place of a name among fields. Several may fit an unquoted one; then the one that is written like that.
pub(super) fn position(fields: &[Field], name: &Name) -> std::result::Result<Option<usize>, ()> {
    let mut fitting = (0..fields.len()).filter(|index| name.matches(&fields[*index].name));
    let Some(first) = fitting.next() else { return Ok(None) };
    if fitting.next().is_none() {
        return Ok(Some(first));
    }
    fields.iter().position(|field| *field.name == *name.text).map(Some).ok_or(())
}

impl Leaf {
    /// Whether a qualifier means it.
    pub(super) fn is_called(&self, qualifier: &ast::TableName) -> bool {
        let named = self.name.as_ref().is_some_and(|name| qualifier.table.name.matches(name));
        named
            && qualifier.catalog.is_none()
            && qualifier.schema.as_ref().is_none_or(|schema| self.is_in(schema))
    }

    fn is_in(&self, schema: &ast::Ident) -> bool {
        self.schema.as_ref().is_some_and(|declared| schema.name.matches(declared))
    }

    /// What a message calls it.
    pub(super) fn label(&self) -> String {
        match (&self.schema, &self.name) {
            (Some(schema), Some(name)) => format!("{schema}.{name}"),
            (_, Some(name)) => name.to_string(),
            _ => "the derived table".to_owned(),
        }
    }
}

impl Scope {
    /// Whether it is worth while to remember what names mean.
    pub(super) fn is_wide(&self) -> bool {
        let columns: usize = self.leaves.iter().map(|leaf| leaf.fields.len()).sum();
        self.clause != Clause::On && columns > WIDE
    }

    /// The merged columns that can be named, with their places.
    fn merged_in_sight(&self) -> impl Iterator<Item = (usize, &Merged)> {
        self.merged.iter().enumerate().filter(|(_, merged)| {
            let within = self.visible.start <= merged.leaves.start && merged.leaves.end <= self.visible.end;
            within && !merged.superseded
        })
    }

    /// What a name without a qualifier means here.
    pub(super) fn unqualified(&self, name: &Name, depth: u16) -> Found {
        let mut found = Found::Nothing;
        for (index, merged) in self.merged_in_sight() {
            if name.matches(&merged.field.name) {
                found = found.and(Place::Merged { depth, index });
            }
        }
        for relation in self.visible.clone() {
            match position(&self.leaves[relation].fields, name) {
                Ok(None) => {}
                Ok(Some(_)) if self.is_covered(relation, name) => {}
                Ok(Some(column)) => found = found.and(place(depth, relation, column)),
                Err(()) => return Found::Several,
            }
        }
        found
    }

    /// Whether a join merged the column of this name of a leaf with another.
    fn is_covered(&self, leaf: usize, name: &Name) -> bool {
        self.merged_in_sight()
            .any(|(_, merged)| merged.leaves.contains(&leaf) && name.matches(&merged.field.name))
    }

    /// The leaves that a qualifier may mean.
    pub(super) fn called(&self, qualifier: &ast::TableName) -> impl Iterator<Item = usize> {
        self.visible.clone().filter(|index| self.leaves[*index].is_called(qualifier))
    }

    /// All that a name without a qualifier may mean, as messages say it.
    pub(super) fn candidates(&self, name: &Name) -> Vec<String> {
        let leaves = self.visible.clone().map(|index| &self.leaves[index]);
        let fitting = leaves.flat_map(|leaf| {
            let fields = leaf.fields.iter().filter(|field| name.matches(&field.name));
            fields.map(|field| format!("{}.{}", leaf.label(), field.name))
        });
        fitting.collect()
    }

    /// The item of the select list that an alias means.
    pub(super) fn aliased(&self, name: &Name) -> Option<Place> {
        let fits = |output: &Output| output.aliased && name.matches(&output.name);
        self.outputs.iter().position(fits).map(Place::Output)
    }
}

/// A column of a leaf. Both counts are bounded, by [`limits::RELATIONS`](crate::limits::RELATIONS) and by the memory
/// that a table's fields take.
pub(super) fn place(depth: u16, relation: usize, column: usize) -> Place {
    Place::Column(column_ref(depth, relation, column))
}

pub(super) fn column_ref(depth: u16, relation: usize, column: usize) -> ColumnRef {
    let relation = u16::try_from(relation).unwrap_or(u16::MAX);
    let column = u32::try_from(column).unwrap_or(u32::MAX);
    ColumnRef { depth, relation, column }
}
