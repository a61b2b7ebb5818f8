//! One type for several values.
//!
//! Literals are soft: a whole number is an Int if it fits and a Long if not, but takes the type of a column that it
//! meets, if it is exactly a value of that type. What is not a literal is promoted by what the types can hold: Short
//! and Int to Int, anything whole and Long to Long, Int or Long and Float to Double (a Float would not hold them),
//! Float and Double to Double.
//!
//! Where the size of a literal decides on the type of a result, the tree is guarded by it ([`Guard::Exceeds`]).
//!
//! [`Guard::Exceeds`]: super::Guard::Exceeds

use super::error::{Error, Problem, Result};
use super::predicate::truth_of;
use super::{Resolver, geometry};
use crate::lift::fit;
use crate::span::Span;
use crate::tree::{Expr, Kind, Literal, Slot, Value};
use crate::types::Type;

/// A value and where it stands.
pub(super) struct Operand {
    pub(super) expr: Expr,
    pub(super) span: Span,
}

impl Operand {
    pub(super) const fn new(expr: Expr, span: Span) -> Self {
        Self { expr, span }
    }

    /// A stand-in for a value of this type that is not a literal.
    pub(super) const fn of_type(ty: Type, span: Span) -> Self {
        let column = crate::tree::ColumnRef { depth: 0, relation: 0, column: 0 };
        Self::new(Expr::column(column, ty), span)
    }
}

/// A number that stands in the text, with its sign.
#[derive(Clone, Copy)]
struct Number {
    /// Without its sign; `None` if it is not whole.
    whole: Option<i64>,
    negative: bool,
    slot: Option<Slot>,
}

impl Number {
    fn of(expr: &Expr) -> Option<Self> {
        match &expr.kind {
            Kind::Literal(Literal { value: Value::Integer(whole), slot }) => {
                Some(Self { whole: Some(*whole), negative: false, slot: *slot })
            }
            Kind::Literal(Literal { value: Value::Double(_), slot }) => {
                Some(Self { whole: None, negative: false, slot: *slot })
            }
            Kind::Negate(inner) => {
                let number = Self::of(inner)?;
                Some(Self { negative: !number.negative, ..number })
            }
            _ => None,
        }
    }

    /// Whether it is exactly a value of the type.
    fn fits(self, ty: Type) -> bool {
        self.whole.is_some_and(|whole| fit(&Value::Integer(whole), ty).is_some())
    }
}

/// The smallest type that holds what two types of numbers hold.
pub(super) fn promote(one: Type, other: Type) -> Type {
    match (one, other) {
        _ if one == other => one,
        (Type::Float, whole) | (whole, Type::Float) if matches!(whole, Type::Int | Type::Long) => {
            Type::Double
        }
        // The order of the variants is that of what they hold, with that exception.
        _ => one.max(other),
    }
}

/// The value in another type; the caller knows that there is a conversion.
pub(super) fn cast(expr: Expr, ty: Type) -> Expr {
    if expr.ty == ty {
        return expr;
    }
    let kind = match expr.kind {
        // A truth value that was a number already, for a larger number.
        Kind::Cast(inner) if inner.ty == Type::Boolean && expr.ty == Type::Int && ty.is_numeric() => {
            Kind::Cast(inner)
        }
        Kind::Literal(literal) => match fit(&literal.value, ty) {
            Some(value) => Kind::Literal(Literal { value, slot: literal.slot }),
            None => Kind::Cast(Box::new(Expr::new(Kind::Literal(literal), expr.ty))),
        },
        Kind::Negate(inner) if ty.is_numeric() && Number::of(&inner).is_some() => {
            Kind::Negate(Box::new(cast(*inner, ty)))
        }
        kind => Kind::Cast(Box::new(Expr::new(kind, expr.ty))),
    };
    Expr::new(kind, ty)
}

/// Whether a type can stand for a number: truth counts as 1 and 0.
pub(super) const fn counts(ty: Type) -> bool {
    ty.is_numeric() || matches!(ty, Type::Boolean | Type::Bit | Type::Null)
}

impl Resolver<'_> {
    /// One type for values that are to be compared, and the values in it.
    pub(super) fn unify_ordered(&mut self, operands: &mut [Operand], verb: &'static str) -> Result<Type> {
        let ty = self.unify(operands, verb)?;
        if ty.is_ordered() {
            return Ok(ty);
        }
        let problem = Problem::Type { wanted: "something that has an order".into(), found: ty };
        let hint = ty.is_geometry().then_some("CONTAINS, INTERSECTS and DISTANCE compare geometries");
        Err(Error::at(problem, operands[0].span).hint_if(hint))
    }

    /// One type for values that stand for the same thing, and the values in it.
    pub(super) fn unify(&mut self, operands: &mut [Operand], verb: &'static str) -> Result<Type> {
        let numeric = operands.iter().any(|it| it.expr.ty.is_numeric());
        let ty = if numeric && operands.iter().all(|it| counts(it.expr.ty)) {
            self.numeric(operands, Type::UnsignedByte)
        } else {
            self.common(operands, verb)?
        };
        for operand in operands {
            operand.cast(ty);
        }
        Ok(ty)
    }

    /// The type of arithmetic on numbers, and the numbers in it: Int at least.
    pub(super) fn unify_arithmetic(&mut self, operands: &mut [Operand]) -> Type {
        let ty = self.numeric(operands, Type::Int);
        for operand in operands {
            operand.cast(ty);
        }
        ty
    }

    /// The type for numbers of which at least one is one.
    fn numeric(&mut self, operands: &[Operand], least: Type) -> Type {
        let types = operands.iter().filter(|it| Number::of(&it.expr).is_none()).map(|it| it.expr.ty);
        let whole = |ty| if matches!(ty, Type::Boolean | Type::Bit) { Type::Int } else { ty };
        let base = types.filter(|ty| *ty != Type::Null).map(whole).reduce(promote);
        let numbers = || operands.iter().filter_map(|it| Number::of(&it.expr));
        if numbers().any(|number| number.whole.is_none()) {
            return Type::Double;
        }
        match base {
            None => self.smallest(&[Type::Int, Type::Long], &numbers()),
            Some(Type::Float) => self.smallest(&[Type::Float, Type::Double], &numbers()),
            Some(ty @ (Type::Long | Type::Double)) => ty,
            Some(ty) => {
                // The negative of a small type is an Int.
                let least = if numbers().any(|number| number.negative) { Type::Int } else { least };
                let chain = [Type::UnsignedByte, Type::Short, Type::Int, Type::Long];
                let from = chain.iter().position(|it| *it == ty.max(least)).unwrap_or(chain.len() - 1);
                self.smallest(&chain[from..], &numbers())
            }
        }
    }

    /// The first type of a chain that all numbers fit; the last, if there is none.
    fn smallest(&mut self, chain: &[Type], numbers: &(impl Iterator<Item = Number> + Clone)) -> Type {
        let (last, others) = chain.split_last().expect("a chain has a type");
        for ty in others {
            let Some(over) = numbers.clone().find(|number| !number.fits(*ty)) else { return *ty };
            self.exceeds(over.slot, *ty);
        }
        *last
    }

    /// The type for values that are not all numbers.
    fn common(&mut self, operands: &mut [Operand], verb: &'static str) -> Result<Type> {
        let types = operands.iter().map(|it| it.expr.ty).filter(|ty| *ty != Type::Null);
        let mut ty = types.clone().next().unwrap_or(Type::Null);
        // A text that stands in the query may be a timestamp or a truth value; so it does not decide.
        let soft = |ty| matches!(ty, Type::Text);
        if soft(ty) {
            ty = types.clone().find(|ty| !soft(*ty)).unwrap_or(ty);
        }
        if ty == Type::Bit {
            ty = Type::Boolean;
        }
        for index in 0..operands.len() {
            let fits = self.fits_common(&mut operands[index], ty);
            if !fits {
                return Err(mismatch(operands, index, ty, verb));
            }
        }
        Ok(ty)
    }

    /// Whether a value can be had in the type; a literal may become another for that.
    fn fits_common(&mut self, operand: &mut Operand, ty: Type) -> bool {
        match (operand.expr.ty, ty) {
            (found, _) if found == ty => true,
            (Type::Null, _) | (Type::Bit, Type::Boolean) => true,
            (Type::Text, Type::Timestamp) => operand.expr.as_literal().is_some(),
            (Type::Text, Type::Boolean) => self.spells_truth(operand),
            _ => false,
        }
    }
}

impl Resolver<'_> {
    /// Whether a value is a literal that spells a truth value, which it then becomes.
    fn spells_truth(&mut self, operand: &mut Operand) -> bool {
        let Some(Literal { value: Value::Text(text), slot }) = operand.expr.as_literal() else {
            return false;
        };
        let Some(truth) = truth_of(text) else { return false };
        let (value, slot) = (Value::Text(text.clone()), *slot);
        self.require_slot(slot, &value);
        operand.expr = Expr::computed(Value::Boolean(truth), Type::Boolean);
        true
    }
}

/// A number as Double.
pub(super) fn to_double(operand: Operand) -> Result<Expr> {
    to_number(operand).map(|expr| cast(expr, Type::Double))
}

/// A number, or a truth value as one.
pub(super) fn to_number(operand: Operand) -> Result<Expr> {
    let Operand { expr, span } = operand;
    match expr.ty {
        Type::Boolean | Type::Bit => Ok(cast(expr, Type::Int)),
        ty if counts(ty) => Ok(expr),
        ty => {
            let problem = Problem::Type { wanted: "a number".into(), found: ty };
            Err(Error::at(problem, span).hint_if(number_hint(&expr)))
        }
    }
}

/// A whole number as Long.
pub(super) fn to_long(operand: Operand) -> Result<Expr> {
    let span = operand.span;
    let expr = to_number(operand)?;
    if matches!(expr.ty, Type::Float | Type::Double) {
        let problem = Problem::Unsupported("here a whole number is wanted".into());
        return Err(Error::at(problem, span).hint("CAST(... AS BIGINT) cuts off the fraction"));
    }
    Ok(cast(expr, Type::Long))
}

/// A text.
pub(super) fn to_text(operand: Operand) -> Result<Expr> {
    let Operand { expr, span } = operand;
    match expr.ty {
        Type::Text | Type::Null => Ok(cast(expr, Type::Text)),
        ty => {
            let problem = Problem::Type { wanted: "a text".into(), found: ty };
            let hint = ty.can_cast_to(Type::Text).then_some("CAST(... AS VARCHAR) makes a text of it");
            Err(Error::at(problem, span).hint_if(hint))
        }
    }
}

/// An instant; a text is read as one.
pub(super) fn to_timestamp(operand: Operand) -> Result<Expr> {
    let Operand { expr, span } = operand;
    match expr.ty {
        Type::Timestamp | Type::Text | Type::Null => Ok(cast(expr, Type::Timestamp)),
        found => Err(Error::at(Problem::Type { wanted: "a timestamp".into(), found }, span)),
    }
}

/// A geometry; a text is read as one (STC-S or DALI).
pub(super) fn to_geometry(operand: Operand) -> Result<Expr> {
    let Operand { expr, span } = operand;
    match expr.ty {
        ty if ty.is_geometry() => Ok(expr),
        Type::Null => Ok(cast(expr, Type::Region)),
        Type::Text => Ok(geometry::region(expr)),
        found => {
            let problem = Problem::Type { wanted: "a geometry".into(), found };
            let hint = found.is_numeric().then_some("POINT(lon, lat) makes one of two numbers");
            Err(Error::at(problem, span).hint_if(hint))
        }
    }
}

/// A position.
pub(super) fn to_point(operand: Operand) -> Result<Expr> {
    let Operand { expr, span } = operand;
    match expr.ty {
        Type::Point | Type::Null => Ok(cast(expr, Type::Point)),
        found => {
            let problem = Problem::Type { wanted: "a point".into(), found };
            let hint = match found {
                ty if ty.is_geometry() => Some("CENTROID makes a point of a geometry"),
                ty if ty.is_numeric() => Some("POINT(lon, lat) makes one of two numbers"),
                Type::Text => Some("CAST(... AS POINT) makes one of a text"),
                _ => None,
            };
            Err(Error::at(problem, span).hint_if(hint))
        }
    }
}

impl Operand {
    fn cast(&mut self, ty: Type) {
        let taken = std::mem::replace(&mut self.expr, Expr::computed(Value::Null, Type::Null));
        self.expr = cast(taken, ty);
    }
}

/// The error for an operand that is not of the type of the others. Of a column and a literal the literal is blamed.
fn mismatch(operands: &[Operand], index: usize, ty: Type, verb: &'static str) -> Box<Error> {
    let odd = &operands[index];
    let (one, other) = (odd.expr.ty, ty);
    let is_literal = |it: &Operand| Number::of(&it.expr).is_some() || it.expr.as_literal().is_some();
    let is_text = |it: &Operand| it.expr.ty == Type::Text;
    let sure = operands.iter().find(|it| !is_literal(it)).is_some_and(is_text);
    let mut literals = operands.iter().filter(|it| is_literal(it) && it.expr.ty != Type::Null);
    let blamed = literals.find(|it| is_text(it) != sure).unwrap_or(odd);
    let hint = match (one, other) {
        (Type::Text, other) | (other, Type::Text) => text_hint(&blamed.expr, other),
        (Type::Timestamp, number) | (number, Type::Timestamp) if number.is_numeric() => {
            Some("ivo_to_mjd(...) makes a number of a timestamp".to_owned())
        }
        _ => None,
    };
    Error::at(Problem::Mismatch { left: ty, right: one, verb }, blamed.span).hint_if(hint)
}

/// What to do about a text and something else; blamed is the literal among them, if there is one.
fn text_hint(blamed: &Expr, other: Type) -> Option<String> {
    match (blamed.as_literal().map(|literal| &literal.value), other) {
        (Some(Value::Text(_)), other) if other.is_numeric() => number_hint(blamed),
        (Some(Value::Text(_)), Type::Boolean) => Some("truth values are TRUE and FALSE".to_owned()),
        (Some(Value::Integer(whole)), _) => Some(format!("a text stands in single quotes: '{whole}'")),
        (_, Type::Timestamp) => Some("CAST(... AS TIMESTAMP) makes a timestamp of a text".to_owned()),
        (_, other) if other.is_numeric() => {
            Some("CAST makes a number of a text, or a text of a number".to_owned())
        }
        _ => None,
    }
}

/// What to do about a text that should be a number.
fn number_hint(expr: &Expr) -> Option<String> {
    match expr.as_literal() {
        Some(Literal { value: Value::Text(text), .. }) if text.trim().parse::<f64>().is_ok() => {
            Some(format!("a number stands without quotes: {}", text.trim()))
        }
        _ if expr.ty == Type::Text => {
            Some("CAST(... AS DOUBLE PRECISION) makes a number of a text".to_owned())
        }
        _ if expr.ty == Type::Timestamp => Some("ivo_to_mjd(...) makes a number of a timestamp".to_owned()),
        _ => None,
    }
}
