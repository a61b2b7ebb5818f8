//! What a column's name means, and what its author may have meant.

use super::Resolver;
use super::error::{Error, Problem, Result};
use super::scope::{Clause, Found, Leaf, Place, Scope, place, position};
use crate::ast::{Ident, TableName};
use crate::suggest::nearest;
use crate::tree::{ColumnRef, Expr, Kind};
use crate::types::Field;

/// Columns that a hint names.
const SHOWN: usize = 12;

impl Resolver<'_> {
    /// The value of a name.
    pub(super) fn column(&mut self, qualifier: Option<&TableName>, name: &Ident) -> Result<Expr> {
        match self.place(qualifier, name)? {
            Place::Column(column) => {
                let scope = self.scope();
                if column.depth == 0 && !scope.in_aggregate && scope.clause.is_grouped() {
                    scope.named.push((column, name.span()));
                }
                Ok(Expr::column(column, self.field(column).ty))
            }
            Place::Merged { depth, index } => {
                let merged = &self.scopes[self.scopes.len() - 1 - usize::from(depth)].merged[index];
                Ok(deepened(&merged.expr, depth))
            }
            Place::Output(index) => {
                let expr = self.scope().outputs[index].expr.clone();
                self.copy(&expr, name.span())
            }
        }
    }

    /// What a name means, remembered where that is dear to find out.
    fn place(&mut self, qualifier: Option<&TableName>, name: &Ident) -> Result<Place> {
        if qualifier.is_some() || !self.scope().is_wide() {
            return self.find(qualifier, name);
        }
        if let Some(place) = self.scope().known.get(&name.name) {
            return Ok(*place);
        }
        let place = self.find(None, name)?;
        if let Place::Column(_) = place {
            self.scope().known.insert(name.name.clone(), place);
        }
        Ok(place)
    }

    /// The column of a place that was found.
    pub(super) fn field(&self, column: ColumnRef) -> &Field {
        let scope = &self.scopes[self.scopes.len() - 1 - usize::from(column.depth)];
        &scope.leaves[usize::from(column.relation)].fields[column.column as usize]
    }

    /// What a name means: a column of this select, else an item of its list where that can be named, else a column of
    /// the selects around.
    pub(super) fn find(&self, qualifier: Option<&TableName>, name: &Ident) -> Result<Place> {
        let in_sight = self.scopes.len() - self.hidden;
        for (depth, scope) in (0u16..).zip(self.scopes.iter().rev().take(in_sight)) {
            let found = match qualifier {
                None => scope.unqualified(&name.name, depth),
                Some(qualifier) => qualified(scope, qualifier, name, depth)?,
            };
            match found {
                Found::One(place) => return Ok(place),
                Found::Several => return Err(ambiguous(scope, name)),
                Found::Nothing => {}
            }
            let own = depth == 0 && qualifier.is_none() && scope.clause.sees_items();
            if let Some(place) = own.then(|| scope.aliased(&name.name)).flatten() {
                return Ok(place);
            }
        }
        match qualifier {
            None => Err(self.unknown_column(name)),
            Some(qualifier) => Err(self.unknown_qualifier(qualifier)),
        }
    }

    /// What ORDER BY or GROUP BY means by a single name, if it is one of the select list's.
    pub(super) fn output_named(&mut self, name: &Ident) -> Result<Option<usize>> {
        let outputs = &self.scope().outputs;
        let fits = |index: &usize| name.name.matches(&outputs[*index].name);
        let fitting: Vec<usize> = (0..outputs.len()).filter(fits).collect();
        let Some((&first, others)) = fitting.split_first() else { return Ok(None) };
        for &other in others {
            let outputs = &self.scope().outputs;
            let (one, other) = (outputs[first].expr.clone(), outputs[other].expr.clone());
            if !self.same(&one, &other) {
                let candidates = fitting.iter().map(|index| format!("column {}", index + 1)).collect();
                let problem = Problem::AmbiguousColumn { name: name.to_string(), candidates };
                return Err(Error::at(problem, name.span()).hint("the position of the column says which"));
            }
        }
        Ok(Some(first))
    }

    pub(super) fn unknown_column(&self, name: &Ident) -> Box<Error> {
        let error = Error::at(Problem::UnknownColumn(name.to_string()), name.span());
        let in_sight = &self.scopes[self.hidden..];
        let leaves = || in_sight.iter().rev().flat_map(|scope| &scope.leaves[scope.visible.clone()]);
        let names = leaves().flat_map(|leaf| leaf.fields.iter().map(|field| &*field.name));
        if let Some(near) = nearest(&name.name.text, names) {
            let owner = leaves().find(|leaf| leaf.fields.iter().any(|field| *field.name == *near));
            let owner = owner.filter(|_| leaves().count() > 1).map(|leaf| format!(" of {}", leaf.label()));
            let heeds = if name.name.quoted && near.eq_ignore_ascii_case(&name.name.text) {
                "; in double quotes, case counts"
            } else {
                ""
            };
            return error.hint(format!("did you mean {near}{}{heeds}?", owner.unwrap_or_default()));
        }
        error.hint_if(self.hint_for(name))
    }

    /// Why a column may be out of sight.
    fn hint_for(&self, name: &Ident) -> Option<String> {
        let has = |scope: &Scope| {
            let leaf = scope.leaves.iter().find(|leaf| position(&leaf.fields, &name.name) != Ok(None))?;
            Some(leaf.label())
        };
        let own = self.scopes.last().filter(|scope| scope.clause == Clause::On).and_then(has);
        if let Some(leaf) = own {
            return Some(format!("{leaf} has it, but is no part of this join"));
        }
        if let Some(leaf) = self.scopes[..self.hidden].iter().find_map(has) {
            return Some(format!(
                "{leaf} has it, but a query in FROM or WITH cannot see what stands around it"
            ));
        }
        let from_nothing = self.scopes.last().is_some_and(|scope| scope.leaves.is_empty());
        if name.name.quoted {
            return Some(format!(
                "double quotes make it a name; a text stands in single ones: '{}'",
                name.name.text
            ));
        }
        if from_nothing {
            return Some("the query has no FROM".to_owned());
        }
        self.columns_of_one()
    }

    /// What the only table has, if that is not too much to say.
    fn columns_of_one(&self) -> Option<String> {
        let [leaf] = &self.scopes.last()?.leaves[..] else { return None };
        let names: Vec<&str> = leaf.fields.iter().take(SHOWN).map(|field| &*field.name).collect();
        let more = if leaf.fields.len() > SHOWN { ", ..." } else { "" };
        Some(format!("{} has {}{more}", leaf.label(), names.join(", ")))
    }

    pub(super) fn unknown_qualifier(&self, qualifier: &TableName) -> Box<Error> {
        let error = Error::at(Problem::UnknownQualifier(qualifier.to_string()), qualifier.span());
        error.hint_if(self.hint_for_qualifier(qualifier))
    }

    /// Why what is called so may be out of sight, or what else may be meant.
    fn hint_for_qualifier(&self, qualifier: &TableName) -> Option<String> {
        let own = self.scopes.last().filter(|scope| scope.clause == Clause::On);
        if own.is_some_and(|scope| scope.leaves.iter().any(|leaf| leaf.is_called(qualifier))) {
            return Some(format!("{qualifier} is no part of this join"));
        }
        let mut around = self.scopes[..self.hidden].iter().flat_map(|scope| &scope.leaves);
        if around.any(|leaf| leaf.is_called(qualifier)) {
            return Some("a query in FROM or WITH cannot see what stands around it".to_owned());
        }
        let leaves = || self.scopes[self.hidden..].iter().rev().flat_map(|scope| &scope.leaves);
        let table = |leaf: &&Leaf| leaf.table.as_ref().is_some_and(|it| qualifier.table.name.matches(it));
        if let Some(leaf) = leaves().find(table) {
            return Some(format!("it is called {} here", leaf.label()));
        }
        let near = nearest(&qualifier.table.name.text, leaves().filter_map(|leaf| leaf.name.as_deref()));
        near.map(|near| format!("did you mean {near}?"))
    }

    /// The columns of the leaf that `qualifier.*` means.
    pub(super) fn leaf(&self, qualifier: &TableName) -> Result<usize> {
        let scope = self.scopes.last().expect("items stand in selects");
        let mut called = scope.called(qualifier);
        match (called.next(), called.next()) {
            (Some(leaf), None) => Ok(leaf),
            (Some(_), Some(_)) => Err(ambiguous_qualifier(scope, qualifier)),
            _ => Err(self.unknown_qualifier(qualifier)),
        }
    }
}

/// What a qualified name means in a select. A qualifier that means a leaf of it means none further out.
fn qualified(scope: &Scope, qualifier: &TableName, name: &Ident, depth: u16) -> Result<Found> {
    let mut called = scope.called(qualifier);
    let Some(leaf) = called.next() else { return Ok(Found::Nothing) };
    if called.next().is_some() {
        return Err(ambiguous_qualifier(scope, qualifier));
    }
    let fields = &scope.leaves[leaf].fields;
    match position(fields, &name.name) {
        Ok(Some(column)) => Ok(Found::One(place(depth, leaf, column))),
        Ok(None) => Err(unknown_in(scope, leaf, qualifier, name)),
        Err(()) => Ok(Found::Several),
    }
}

fn unknown_in(scope: &Scope, leaf: usize, qualifier: &TableName, name: &Ident) -> Box<Error> {
    let error = Error::at(Problem::UnknownColumn(format!("{qualifier}.{name}")), name.span());
    let names = |leaf: usize| scope.leaves[leaf].fields.iter().map(|field| &*field.name);
    if let Some(near) = nearest(&name.name.text, names(leaf)) {
        return error.hint(format!("did you mean {near}?"));
    }
    let has = |other: &usize| position(&scope.leaves[*other].fields, &name.name) != Ok(None);
    let other = scope.visible.clone().find(has);
    error.hint_if(other.map(|other| format!("{} has it", scope.leaves[other].label())))
}

fn ambiguous(scope: &Scope, name: &Ident) -> Box<Error> {
    let candidates = scope.candidates(&name.name);
    Error::at(Problem::AmbiguousColumn { name: name.to_string(), candidates }, name.span())
}

fn ambiguous_qualifier(scope: &Scope, qualifier: &TableName) -> Box<Error> {
    let candidates = scope.called(qualifier).map(|leaf| scope.leaves[leaf].label()).collect();
    Error::at(Problem::AmbiguousTable { name: qualifier.to_string(), candidates }, qualifier.span())
}

/// A merged column as selects so many further in see it.
fn deepened(expr: &Expr, by: u16) -> Expr {
    let kind = match &expr.kind {
        Kind::Column(column) => Kind::Column(ColumnRef { depth: column.depth + by, ..*column }),
        Kind::Cast(inner) => Kind::Cast(Box::new(deepened(inner, by))),
        Kind::Call(function, parts) => {
            Kind::Call(*function, parts.iter().map(|part| deepened(part, by)).collect())
        }
        other => other.clone(),
    };
    Expr::new(kind, expr.ty)
}
