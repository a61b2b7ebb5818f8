//! The select list: `*` spelled out, names for what has none, and what result columns say of themselves (TAP 1.1 3.2).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Resolver;
use super::error::{Error, Problem, Result};
use super::from::Visible;
use super::scope::{Output, Place, Shape, column_ref};
use crate::ast::{self, ExprKind, Item, Target, TargetType};
use crate::functions::Function;
use crate::lift;
use crate::span::Span;
use crate::tree::{ColumnRef, Expr, Kind, Value};
use crate::types::{Field, Size, Type};

/// Fields up to which names are compared in pairs: a hash set costs an allocation each.
const FEW: usize = 32;

impl Resolver<'_> {
    /// The select list of the innermost select; its outputs are there when this is done.
    pub(super) fn items(&mut self, items: &[Item]) -> Result<()> {
        let mut outputs = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::All(span) => self.star(span.0, &mut outputs)?,
                Item::AllOf(name) => {
                    let leaf = self.leaf(name)?;
                    self.spell_out_leaf(leaf, name.span(), &mut outputs);
                }
                Item::Expr { expr, alias } => {
                    let output = self.item(expr, alias.as_ref(), outputs.len())?;
                    outputs.push(output);
                }
            }
            self.bound(outputs.len(), self.options.items, "selected columns", item_span(item))?;
        }
        self.scope().outputs = outputs;
        Ok(())
    }

    /// `*`
    fn star(&mut self, span: Span, outputs: &mut Vec<Output>) -> Result<()> {
        let scope = self.scopes.last().expect("items stand in selects");
        match &scope.shape {
            Some(Shape::Leaf(leaf)) => self.spell_out_leaf(*leaf, span, outputs),
            Some(shape) => {
                outputs.extend(self.columns(shape).into_iter().map(|Visible { field, expr }| {
                    let name = Arc::clone(&field.name);
                    let field = (!matches!(expr.kind, Kind::Column(_))).then(|| Box::new(field));
                    Output { expr, name, aliased: false, field, span }
                }));
            }
            None => {
                let error =
                    Error::at(Problem::Unsupported("there is nothing that * could mean".into()), span);
                return Err(error.hint("the query has no FROM"));
            }
        }
        Ok(())
    }

    /// All columns of a leaf.
    fn spell_out_leaf(&self, leaf: usize, span: Span, outputs: &mut Vec<Output>) {
        let scope = self.scopes.last().expect("items stand in selects");
        let fields = scope.leaves[leaf].fields.iter().enumerate();
        outputs.extend(fields.map(|(column, field)| Output {
            expr: Expr::column(column_ref(0, leaf, column), field.ty),
            name: Arc::clone(&field.name),
            aliased: false,
            field: None,
            span,
        }));
    }

    fn item(&mut self, expr: &ast::Expr, alias: Option<&ast::Ident>, place: usize) -> Result<Output> {
        let value = self.value(expr)?;
        let name = match alias {
            Some(alias) => Arc::clone(&alias.name.text),
            None => self.own_name(expr).unwrap_or_else(|| format!("col{}", place + 1).into()),
        };
        let field = match (&value.kind, &expr.kind) {
            (Kind::Column(_), ExprKind::Column { .. }) => None,
            _ => Some(Box::new(self.described(expr, &value, &name)?)),
        };
        Ok(Output { expr: value, name, aliased: alias.is_some(), field, span: expr.span() })
    }

    /// The name that an expression brings along: of a column, or of the function that it is a call of.
    fn own_name(&self, expr: &ast::Expr) -> Option<Arc<str>> {
        match &expr.kind {
            ExprKind::Column { qualifier, name } => match self.find(qualifier.as_deref(), name) {
                Ok(Place::Column(column)) => Some(Arc::clone(&self.field(column).name)),
                _ => Some(Arc::clone(&name.name.text)),
            },
            ExprKind::Cast(inner, _) => self.own_name(inner),
            ExprKind::Call(call) => Some(call.name.name.text.to_ascii_lowercase().into()),
            _ => None,
        }
    }

    /// What a computed column says of itself.
    fn described(&mut self, expr: &ast::Expr, value: &Expr, name: &Arc<str>) -> Result<Field> {
        if let Kind::Scalar(query) = &value.kind {
            return Ok(Field { name: Arc::clone(name), ..query.fields[0].clone() });
        }
        let measured = self.measured(expr);
        let mut field = Field::new(Arc::clone(name), value.ty);
        field.unit = measured.unit;
        field.ucd = measured.ucd;
        field.unicode = value.ty == Type::Text && self.is_unicode(value);
        if let Some(size) = self.size(expr, value)? {
            field.size = size;
        }
        Ok(field)
    }

    /// Whether a text may have characters beyond ASCII, because a column has them that it is made of.
    fn is_unicode(&self, value: &Expr) -> bool {
        lift::any(value, &mut |node| match &node.kind {
            Kind::Column(column) => self.field(*column).unicode,
            Kind::Aggregate(index) => {
                let scope = self.scopes.last().expect("aggregates stand in selects");
                scope.aggregates[*index].arguments.iter().any(|argument| self.is_unicode(argument))
            }
            Kind::Scalar(query) => query.fields[0].unicode,
            _ => false,
        })
    }

    /// How long a text or an array is, if it can be said.
    fn size(&self, expr: &ast::Expr, value: &Expr) -> Result<Option<Size>> {
        if let Kind::Call(Function::EpochPropagate, _) = value.kind {
            return Ok(Some(Size::Fixed(6)));
        }
        match &expr.kind {
            ExprKind::Cast(
                _,
                Target { length: Some(length), kind: TargetType::Char | TargetType::VarChar, .. },
            ) => {
                let count = super::expr::cast_length(length)?;
                Ok(Some(Size::Variable(u32::try_from(count).ok())))
            }
            _ => Ok(None),
        }
    }

    /// The result columns of the innermost select, under names of their own.
    pub(super) fn fields(&mut self, items: &[Item]) -> Arc<[Field]> {
        let scope = self.scopes.last().expect("items stand in selects");
        if let ([Item::All(_)], Some(Shape::Leaf(leaf))) = (items, &scope.shape)
            && are_unique(&scope.leaves[*leaf].fields)
        {
            return Arc::clone(&scope.leaves[*leaf].fields);
        }
        let mut fields: Vec<Field> = scope.outputs.iter().map(|output| self.field_of(output)).collect();
        make_unique(&mut fields);
        fields.into()
    }

    fn field_of(&self, output: &Output) -> Field {
        let name = Arc::clone(&output.name);
        match (&output.field, &output.expr.kind) {
            (Some(field), _) => Field { name, ..(**field).clone() },
            (None, Kind::Column(column)) => Field { name, ..self.field(*column).clone() },
            _ => Field::new(name, output.expr.ty),
        }
    }

    /// The item of a position in ORDER BY or GROUP BY, which shaped the tree.
    pub(super) fn position(&mut self, literal: &ast::Literal, columns: usize) -> Result<usize> {
        let place = match literal.value {
            Value::Integer(position) => usize::try_from(position).ok().and_then(|it| it.checked_sub(1)),
            _ => None,
        };
        match place.filter(|place| *place < columns) {
            Some(place) => {
                self.require(literal);
                Ok(place)
            }
            None => {
                let position = literal.to_string();
                Err(Error::at(Problem::Position { position, columns }, literal.span()))
            }
        }
    }

    /// The column's own name, as a message says it.
    pub(super) fn name_of(&self, column: ColumnRef) -> String {
        self.field(column).name.to_string()
    }
}

/// The position that an expression of ORDER BY or GROUP BY may be.
pub(super) fn as_position(expr: &ast::Expr) -> Option<&ast::Literal> {
    match &expr.kind {
        ExprKind::Literal(literal) if matches!(literal.value, Value::Integer(_) | Value::Double(_)) => {
            Some(literal)
        }
        _ => None,
    }
}

fn item_span(item: &Item) -> Span {
    match item {
        Item::All(span) => span.0,
        Item::AllOf(name) => name.span(),
        Item::Expr { expr, .. } => expr.span(),
    }
}

fn are_unique(fields: &[Field]) -> bool {
    if fields.len() <= FEW {
        let again = |(index, field): (usize, &Field)| {
            fields[..index].iter().any(|other| other.name.eq_ignore_ascii_case(&field.name))
        };
        return !fields.iter().enumerate().any(again);
    }
    let mut names = HashSet::with_capacity(fields.len());
    fields.iter().all(|field| names.insert(field.name.to_ascii_lowercase()))
}

/// Numbers the later ones of equal names, case ignored: `ra`, `ra_2`.
fn make_unique(fields: &mut [Field]) {
    if are_unique(fields) {
        return;
    }
    let lower = |name: &str| name.to_ascii_lowercase();
    let mut taken: HashSet<String> = fields.iter().map(|field| lower(&field.name)).collect();
    // The number that a name was given last: a thousand equal names do not each begin to count anew.
    let mut last: HashMap<String, u32> = HashMap::with_capacity(fields.len());
    for field in fields {
        let base = lower(&field.name);
        let Some(mut number) = last.get(&base).copied() else {
            last.insert(base, 1);
            continue;
        };
        let name = loop {
            number += 1;
            let name = format!("{}_{number}", field.name);
            if taken.insert(lower(&name)) {
                break name;
            }
        };
        last.insert(base, number);
        field.name = name.into();
    }
}
