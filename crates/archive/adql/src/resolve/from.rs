//! FROM: tables, derived tables, uses of CTEs, and their joins.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::coerce::Operand;
use super::error::{Error, Problem, Result};
use super::scope::{Clause, Leaf, Merged, Shape, column_ref};
use super::{Cte, Resolver};
use crate::ast::{self, Alias, Constraint, Ident, TableExpr, TableName};
use crate::catalogue::Table;
use crate::functions::Function;
use crate::limits;
use crate::span::Span;
use crate::suggest::nearest;
use crate::tree::{Comparison, Expr, Join, JoinKind, Kind, Relation, TableRef};
use crate::types::{Field, Type};

/// A column that a leaf or a join shows: what `*` spells out.
pub(super) struct Visible {
    pub(super) field: Field,
    pub(super) expr: Expr,
}

/// A part of FROM that was understood.
struct Part {
    join: Join,
    shape: Shape,
}

impl Resolver<'_> {
    /// FROM whole: what commas part is a product.
    pub(super) fn from(&mut self, list: &[TableExpr]) -> Result<Option<Join>> {
        self.scope().clause = Clause::On;
        let mut parts = list.iter();
        let Some(first) = parts.next() else { return Ok(None) };
        let mut whole = self.table_expr(first)?;
        for next in parts {
            let right = self.table_expr(next)?;
            whole = pair(JoinKind::Inner, whole, right, None, Vec::new());
        }
        let scope = self.scope();
        scope.shape = Some(whole.shape);
        scope.visible = 0..scope.leaves.len();
        Ok(Some(whole.join))
    }

    fn table_expr(&mut self, table: &TableExpr) -> Result<Part> {
        match table {
            TableExpr::Table { name, alias } => self.table(name, alias.as_ref()),
            TableExpr::Derived { query, alias } => self.derived(query, alias.as_ref()),
            TableExpr::Join(join) => self.join(join),
        }
    }

    // ---- leaves

    fn table(&mut self, name: &TableName, alias: Option<&Alias>) -> Result<Part> {
        if let Some(cte) = self.ctes.iter().rposition(|cte| is_cte(cte, name)) {
            return self.use_of_cte(cte, name, alias);
        }
        let table = self.find_table(name)?;
        self.count_relations(1, name.span())?;
        let reference = TableRef {
            schema: Arc::clone(&table.schema),
            table: Arc::clone(&table.name),
            fields: Arc::clone(&table.fields),
        };
        let known = |other: &TableRef| other.schema == reference.schema && other.table == reference.table;
        if !self.tables.iter().any(known) {
            self.tables.push(reference.clone());
        }
        let leaf = Leaf {
            name: Some(Arc::clone(&table.name)),
            schema: Some(table.schema),
            table: Some(table.name),
            fields: table.fields,
        };
        self.leaf_of(Relation::Table(reference), leaf, alias, name.span())
    }

    fn find_table(&self, name: &TableName) -> Result<Table> {
        let schema = name.schema.as_ref().map(|schema| &schema.name);
        let mut found = match name.catalog {
            None => self.catalogue.find(schema, &name.table.name),
            Some(_) => Vec::new(),
        };
        match (found.pop(), found.is_empty()) {
            (Some(table), true) => Ok(table),
            (None, _) => Err(self.unknown_table(name)),
            (Some(last), false) => {
                found.push(last);
                let candidates = found.iter().map(|it| format!("{}.{}", it.schema, it.name)).collect();
                Err(Error::at(Problem::AmbiguousTable { name: name.to_string(), candidates }, name.span()))
            }
        }
    }

    /// The mistake may be in the schema, in the table's name, or in both.
    fn unknown_table(&self, name: &TableName) -> Box<Error> {
        let error = Error::at(Problem::UnknownTable(name.to_string()), name.span());
        let names = self.catalogue.names();
        let ctes = || self.ctes.iter().map(|cte| &*cte.name.text);
        let bare = |full: &str| full.rsplit('.').next().map_or(0, |last| full.len() - last.len());
        let same = |full: &&String| full[bare(full)..].eq_ignore_ascii_case(&name.table.name.text);
        let near = names.iter().find(same).map(String::as_str);
        let whole = || {
            let schema = name.schema.as_ref()?;
            let full = format!("{}.{}", schema.name.text, name.table.name.text);
            nearest(&full, names.iter().map(String::as_str))
        };
        let part = || {
            let last =
                nearest(&name.table.name.text, names.iter().map(|full| &full[bare(full)..]).chain(ctes()))?;
            names.iter().map(String::as_str).find(|full| full[bare(full)..] == *last).or(Some(last))
        };
        error.hint_if(near.or_else(whole).or_else(part).map(|near| format!("did you mean {near}?")))
    }

    fn use_of_cte(&mut self, index: usize, name: &TableName, alias: Option<&Alias>) -> Result<Part> {
        let cte = &self.ctes[index];
        let query = Arc::clone(&cte.query);
        let leaf = Leaf {
            name: Some(Arc::clone(&cte.name.text)),
            schema: None,
            table: Some(Arc::clone(&cte.name.text)),
            fields: Arc::clone(&cte.fields),
        };
        let (relations, depth) = (cte.relations, cte.depth);
        self.count_relations(relations.saturating_add(1), name.span())?;
        self.reach(self.depth + depth, name.span())?;
        self.leaf_of(Relation::Query(query), leaf, alias, name.span())
    }

    fn derived(&mut self, query: &ast::Query, alias: Option<&Alias>) -> Result<Part> {
        let hidden = std::mem::replace(&mut self.hidden, self.scopes.len());
        let resolved = self.query(query);
        self.hidden = hidden;
        let resolved = Arc::new(resolved?);
        self.count_relations(1, query.span())?;
        let leaf = Leaf { name: None, schema: None, table: None, fields: Arc::clone(&resolved.fields) };
        self.leaf_of(Relation::Query(resolved), leaf, alias, query.span())
    }

    fn leaf_of(
        &mut self,
        relation: Relation,
        mut leaf: Leaf,
        alias: Option<&Alias>,
        span: Span,
    ) -> Result<Part> {
        if let Some(alias) = alias {
            leaf.name = Some(Arc::clone(&alias.name.name.text));
            leaf.schema = None;
            leaf.fields = renamed(leaf.fields, &alias.columns, alias.name.span())?;
        }
        let span = alias.map_or(span, |alias| alias.name.span());
        self.check_name(&leaf, span)?;
        let limit = self.options.relations.min(usize::from(u16::MAX));
        let scope = self.scope();
        let index = scope.leaves.len();
        scope.leaves.push(leaf);
        scope.relations.push(relation);
        scope.visible = index..index + 1;
        self.bound(index + 1, limit, "tables in one FROM", span)?;
        Ok(Part { join: Join::Leaf(index), shape: Shape::Leaf(index) })
    }

    /// Two leaves of one name could not be told apart.
    fn check_name(&mut self, leaf: &Leaf, span: Span) -> Result<()> {
        let Some(name) = &leaf.name else { return Ok(()) };
        let taken = self.scope().leaves.iter().any(|other| {
            let named = other.name.as_ref().is_some_and(|other| other.eq_ignore_ascii_case(name));
            named && other.schema == leaf.schema
        });
        if !taken {
            return Ok(());
        }
        let problem = Problem::Duplicate { what: "tables in FROM", name: leaf.label() };
        Err(Error::at(problem, span).hint("AS gives a table another name"))
    }

    fn count_relations(&mut self, count: usize, span: Span) -> Result<()> {
        self.relations = self.relations.saturating_add(count);
        self.bound(self.relations, self.options.tables, "tables, those of WITH counted at each use", span)
    }

    /// Notes that queries stand in each other so deep.
    pub(super) fn reach(&mut self, depth: usize, span: Span) -> Result<()> {
        self.deepest = self.deepest.max(depth);
        self.bound(depth, limits::QUERY_DEPTH, "queries that stand in each other", span)
    }

    // ---- joins

    fn join(&mut self, join: &ast::Join) -> Result<Part> {
        let left = self.table_expr(&join.left)?;
        let right = self.table_expr(&join.right)?;
        let scope = self.scope();
        let leaves = left.first()..scope.leaves.len();
        scope.visible = leaves.clone();
        let joined = Joined { kind: join.kind, left, right, leaves };
        match &join.constraint {
            Constraint::None => Ok(pair(joined.kind, joined.left, joined.right, None, Vec::new())),
            Constraint::On(condition) => {
                self.scope().clause = Clause::On;
                let on = self.condition(condition)?;
                Ok(pair(joined.kind, joined.left, joined.right, Some(on), Vec::new()))
            }
            Constraint::Using(names) => self.using(joined, names),
            Constraint::Natural => self.natural(joined, join.at.0),
        }
    }

    fn using(&mut self, joined: Joined, names: &[Ident]) -> Result<Part> {
        let (left, right) = (self.columns(&joined.left.shape), self.columns(&joined.right.shape));
        let mut pairs: Vec<(usize, usize, Span)> = Vec::with_capacity(names.len());
        for name in names {
            let one = self.column_of_side(&left, name, "left")?;
            let other = self.column_of_side(&right, name, "right")?;
            if pairs.iter().any(|(taken, ..)| *taken == one) {
                let problem = Problem::Duplicate { what: "columns in USING", name: name.to_string() };
                return Err(Error::at(problem, name.span()));
            }
            pairs.push((one, other, name.span()));
        }
        self.merge(joined, &left, &right, &pairs)
    }

    /// The column of a name on one side of a join, by its place in what the side shows.
    fn column_of_side(&self, side: &[Visible], name: &Ident, which: &str) -> Result<usize> {
        let fits = |index: &usize| name.name.matches(&side[*index].field.name);
        let fitting: Vec<usize> = (0..side.len()).filter(fits).collect();
        match fitting[..] {
            [one] => Ok(one),
            [] => {
                let near = nearest(&name.name.text, side.iter().map(|visible| &*visible.field.name));
                let error = Error::at(Problem::UnknownColumn(name.to_string()), name.span());
                Err(error.hint(match near {
                    Some(near) => format!("the {which} side of the join lacks it; did you mean {near}?"),
                    None => format!("the {which} side of the join lacks it"),
                }))
            }
            _ => {
                let candidates =
                    self.scopes.last().expect("a join stands in a select").candidates(&name.name);
                Err(Error::at(Problem::AmbiguousColumn { name: name.to_string(), candidates }, name.span()))
            }
        }
    }

    /// NATURAL: all names that both sides have; if they have none, the product (SQL 92 7.5).
    fn natural(&mut self, joined: Joined, span: Span) -> Result<Part> {
        let (left, right) = (self.columns(&joined.left.shape), self.columns(&joined.right.shape));
        let (mine, theirs) = (by_name(&left), by_name(&right));
        let mut pairs = Vec::new();
        for (one, visible) in left.iter().enumerate() {
            let name = visible.field.name.to_ascii_lowercase();
            let Some(others) = theirs.get(&name) else { continue };
            if mine[&name].len() > 1 || others.len() > 1 {
                let name = visible.field.name.to_string();
                let problem = Problem::Duplicate { what: "columns on one side of a NATURAL JOIN", name };
                return Err(Error::at(problem, span).hint("USING or ON say which columns are meant"));
            }
            pairs.push((one, others[0], span));
        }
        self.merge(joined, &left, &right, &pairs)
    }

    /// The join on equality of pairs of columns, each pair one column from now on.
    fn merge(
        &mut self,
        joined: Joined,
        left: &[Visible],
        right: &[Visible],
        pairs: &[(usize, usize, Span)],
    ) -> Result<Part> {
        let mut conditions = Vec::with_capacity(pairs.len());
        let mut merged = Vec::with_capacity(pairs.len());
        for &(one, other, span) in pairs {
            let (one, other) = (&left[one], &right[other]);
            let (condition, both) = self.equal(one, other, span)?;
            conditions.push(condition);
            merged.push(self.scope().merged.len());
            let (field, expr) = match joined.kind {
                JoinKind::Inner | JoinKind::Left => (one.field.clone(), one.expr.clone()),
                JoinKind::Right => {
                    (Field { name: Arc::clone(&one.field.name), ..other.field.clone() }, other.expr.clone())
                }
                JoinKind::Full => full(one, both),
            };
            self.scope().supersede(&joined.leaves, &field.name);
            let leaves = joined.leaves.clone();
            self.scope().merged.push(Merged { field, expr, leaves, superseded: false });
        }
        let on = match conditions.len() {
            0 => None,
            1 => conditions.pop(),
            _ => Some(Expr::new(Kind::And(conditions), Type::Boolean)),
        };
        Ok(pair(joined.kind, joined.left, joined.right, on, merged))
    }

    /// The equality of two columns, and both in the type that they are compared in.
    fn equal(&mut self, one: &Visible, other: &Visible, span: Span) -> Result<(Expr, [Expr; 2])> {
        let mut both = [Operand::new(one.expr.clone(), span), Operand::new(other.expr.clone(), span)];
        self.unify_ordered(&mut both, "compared")?;
        let [one, other] = both.map(|operand| operand.expr);
        let copies = [one.clone(), other.clone()];
        let kind = Kind::Compare(Comparison::Equal, Box::new(one), Box::new(other));
        Ok((Expr::new(kind, Type::Boolean), copies))
    }

    /// What a part of FROM shows, in the order of `*`: of a join first what it merged (SQL 92 7.5).
    pub(super) fn columns(&self, shape: &Shape) -> Vec<Visible> {
        let scope = self.scopes.last().expect("a join stands in a select");
        match shape {
            Shape::Leaf(leaf) => self.leaf_columns(*leaf),
            Shape::Pair { left, right, merged } => {
                let of = |index: &usize| {
                    let merged = &scope.merged[*index];
                    Visible { field: merged.field.clone(), expr: merged.expr.clone() }
                };
                let mut all: Vec<Visible> = merged.iter().map(of).collect();
                let lower = |visible: &Visible| visible.field.name.to_ascii_lowercase();
                let once: HashSet<String> = all.iter().map(lower).collect();
                for side in [left, right] {
                    let seen = |visible: &Visible| once.is_empty() || !once.contains(&lower(visible));
                    all.extend(self.columns(side).into_iter().filter(seen));
                }
                all
            }
        }
    }

    /// All columns of a leaf.
    fn leaf_columns(&self, leaf: usize) -> Vec<Visible> {
        let scope = self.scopes.last().expect("a leaf stands in a select");
        let visible = |(column, field): (usize, &Field)| Visible {
            field: field.clone(),
            expr: Expr::column(column_ref(0, leaf, column), field.ty),
        };
        scope.leaves[leaf].fields.iter().enumerate().map(visible).collect()
    }
}

/// The places of columns by their names in lower case.
fn by_name(side: &[Visible]) -> HashMap<String, Vec<usize>> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::with_capacity(side.len());
    for (index, visible) in side.iter().enumerate() {
        places.entry(visible.field.name.to_ascii_lowercase()).or_default().push(index);
    }
    places
}

/// Both sides of a join, understood.
struct Joined {
    kind: JoinKind,
    left: Part,
    right: Part,
    /// The leaves of both.
    leaves: Range<usize>,
}

impl Part {
    /// The first of its leaves.
    fn first(&self) -> usize {
        let mut join = &self.join;
        loop {
            match join {
                Join::Leaf(leaf) => return *leaf,
                Join::Pair { left, .. } => join = left,
            }
        }
    }
}

impl super::scope::Scope {
    /// A merged column of the name within these leaves is no longer seen.
    fn supersede(&mut self, leaves: &Range<usize>, name: &str) {
        for merged in &mut self.merged {
            let within = leaves.start <= merged.leaves.start && merged.leaves.end <= leaves.end;
            merged.superseded |= within && merged.field.name.eq_ignore_ascii_case(name);
        }
    }
}

/// The value of a merged column of a full join: of the side that has a row.
fn full(one: &Visible, both: [Expr; 2]) -> (Field, Expr) {
    let ty = both[0].ty;
    let expr = Expr::new(Kind::Call(Function::Coalesce, both.into()), ty);
    (Field { ty, ..one.field.clone() }, expr)
}

fn pair(kind: JoinKind, left: Part, right: Part, on: Option<Expr>, merged: Vec<usize>) -> Part {
    let join = Join::Pair { kind, left: Box::new(left.join), right: Box::new(right.join), on };
    let shape = Shape::Pair { left: Box::new(left.shape), right: Box::new(right.shape), merged };
    Part { join, shape }
}

fn is_cte(cte: &Cte, name: &TableName) -> bool {
    name.schema.is_none() && name.catalog.is_none() && name.table.name.matches(&cte.name.text)
}

/// The columns under other names.
pub(super) fn renamed(fields: Arc<[Field]>, names: &[Ident], span: Span) -> Result<Arc<[Field]>> {
    if names.is_empty() {
        return Ok(fields);
    }
    if names.len() != fields.len() {
        let (left, right) = (fields.len(), names.len());
        let what = "the numbers of columns and of names for them differ";
        return Err(Error::at(Problem::Columns { what, left, right }, span));
    }
    let named = fields.iter().zip(names);
    Ok(named.map(|(field, name)| Field { name: Arc::clone(&name.name.text), ..field.clone() }).collect())
}
