//! Expressions, one node at a time. The walk recurses as deep as the syntax tree is high; each case is a function of
//! its own so that the frames in between stay small.

use super::Resolver;
use super::coerce::{Operand, cast, to_number, to_text};
use super::error::{Error, Problem, Result};
use super::predicate::{boolean, negated_if};
use crate::ast::{self, ExprKind, Sign, TargetType};
use crate::functions::Function;
use crate::limits;
use crate::tree::{Comparison, Expr, Kind, Literal, Operator, Value};
use crate::types::Type;

impl Resolver<'_> {
    /// An expression as it is: a predicate is a truth value.
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Result<Expr> {
        match &expr.kind {
            ExprKind::Column { qualifier, name } => self.column(qualifier.as_deref(), name),
            ExprKind::Literal(literal) => Ok(self.literal(literal)),
            ExprKind::Sign(sign, operand) => self.signed(*sign, operand),
            ExprKind::Arithmetic(operator, left, right) => self.arithmetic(*operator, left, right),
            ExprKind::Concat(list) => self.concat(list),
            ExprKind::Compare(comparison, left, right) => self.compare(*comparison, left, right),
            ExprKind::And(list) => self.conditions(list).map(|list| boolean(Kind::And(list))),
            ExprKind::Or(list) => self.conditions(list).map(|list| boolean(Kind::Or(list))),
            ExprKind::Not(condition) => self.condition(condition).map(|it| negated_if(true, it)),
            ExprKind::Between { value, low, high, negated } => {
                self.between(value, low, high).map(|it| negated_if(*negated, it))
            }
            ExprKind::InList { value, list, negated } => {
                self.in_list(value, list).map(|it| negated_if(*negated, it))
            }
            ExprKind::InQuery { value, query, negated } => {
                self.in_query(value, query).map(|it| negated_if(*negated, it))
            }
            ExprKind::Like { value, pattern, ignore_case, negated } => {
                self.like(value, pattern, *ignore_case).map(|it| negated_if(*negated, it))
            }
            ExprKind::IsNull { value, negated } => self.is_null(value).map(|it| negated_if(*negated, it)),
            ExprKind::IsTruth { value, truth, negated } => {
                self.is_truth(value, *truth).map(|it| negated_if(*negated, it))
            }
            ExprKind::Exists(query) => self.exists(query),
            ExprKind::Scalar(query) => self.scalar(query),
            ExprKind::Case(case) => self.case(case, expr.span()),
            ExprKind::Cast(value, target) => self.cast_to(value, target),
            ExprKind::Call(call) => self.call(call, expr.span()),
        }
    }

    /// A constant. A whole number is a Long by its size only, if nothing else makes it one; the tree is guarded by that
    /// in any case, which is strict and costs a cache little.
    fn literal(&mut self, literal: &ast::Literal) -> Expr {
        let slot = literal.slot.0;
        let ty = match &literal.value {
            Value::Null => Type::Null,
            Value::Boolean(_) => Type::Boolean,
            Value::Integer(whole) if i32::try_from(*whole).is_ok() => Type::Int,
            Value::Integer(_) => {
                self.exceeds(slot, Type::Int);
                Type::Long
            }
            Value::Double(_) => Type::Double,
            Value::Text(_) => Type::Text,
        };
        Expr::new(Kind::Literal(Literal { value: literal.value.clone(), slot }), ty)
    }

    fn signed(&mut self, sign: Sign, operand: &ast::Expr) -> Result<Expr> {
        let value = Operand::new(self.expr(operand)?, operand.span());
        let number = to_number(value)?;
        Ok(match sign {
            Sign::Plus => number,
            Sign::Minus => negate(number),
        })
    }

    fn arithmetic(&mut self, operator: Operator, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        let mut operands = Vec::with_capacity(2);
        for side in [left, right] {
            let value = Operand::new(self.expr(side)?, side.span());
            operands.push(Operand::new(to_number(value)?, side.span()));
        }
        let ty = self.unify_arithmetic(&mut operands);
        let right = operands.pop().expect("two were pushed").expr;
        let left = operands.pop().expect("two were pushed").expr;
        Ok(Expr::new(Kind::Arithmetic(operator, Box::new(left), Box::new(right)), ty))
    }

    /// `||`: what is no text becomes one, if it can.
    fn concat(&mut self, list: &[ast::Expr]) -> Result<Expr> {
        let mut parts = Vec::with_capacity(list.len());
        for part in list {
            let value = self.value(part)?;
            let castable = value.ty.is_numeric() || value.ty == Type::Timestamp;
            let operand = Operand::new(if castable { cast(value, Type::Text) } else { value }, part.span());
            parts.push(to_text(operand)?);
        }
        Ok(Expr::new(Kind::Concat(parts), Type::Text))
    }

    fn is_null(&mut self, value: &ast::Expr) -> Result<Expr> {
        self.expr(value).map(|value| boolean(Kind::IsNull(Box::new(value))))
    }

    // ---- CAST (ADQL 2.1 4.7.1)

    fn cast_to(&mut self, value: &ast::Expr, target: &ast::Target) -> Result<Expr> {
        let expr = self.expr(value)?;
        let (ty, name) = target_type(target.kind);
        if !expr.ty.can_cast_to(ty) {
            return Err(Error::at(Problem::Cast { from: expr.ty, to: name }, value.span()));
        }
        match (&target.length, ty) {
            (Some(length), Type::Text) => self.cut(cast(expr, Type::Text), length),
            (_, Type::Region) if expr.ty == Type::Text => Ok(super::geometry::region(expr)),
            // Not zero is true.
            (_, Type::Boolean) if expr.ty.is_numeric() => {
                let zero = cast(Expr::computed(Value::Integer(0), Type::Int), expr.ty);
                let compared = Kind::Compare(Comparison::NotEqual, Box::new(expr), Box::new(zero));
                Ok(boolean(compared))
            }
            _ => Ok(explicit(expr, ty)),
        }
    }

    /// `CHAR(n)` and `VARCHAR(n)`: what is too long is cut off, what is too short stays so.
    fn cut(&mut self, text: Expr, length: &ast::Literal) -> Result<Expr> {
        let count = cast_length(length)?;
        self.require(length);
        let count = Literal { value: Value::Integer(count), slot: length.slot.0 };
        let count = Expr::new(Kind::Literal(count), Type::Long);
        Ok(Expr::new(Kind::Call(Function::Left, vec![text, count]), Type::Text))
    }
}

/// A conversion that the text asks for. A literal that may not fit the type is not converted before the query runs:
/// other literals of the query must be able to take its place.
fn explicit(expr: Expr, ty: Type) -> Expr {
    let always = matches!(ty, Type::Long | Type::Double) || expr.ty == Type::Null;
    if expr.ty == ty || always {
        return cast(expr, ty);
    }
    Expr::new(Kind::Cast(Box::new(expr)), ty)
}

/// The length that a CAST asks for.
pub(super) fn cast_length(length: &ast::Literal) -> Result<i64> {
    match length.value {
        Value::Integer(count) if (1..=limits::CAST_LENGTH).contains(&count) => Ok(count),
        _ => {
            let problem = format!("a text has a length from 1 to {}", limits::CAST_LENGTH);
            Err(Error::at(Problem::Range(problem), length.span()))
        }
    }
}

/// The negative: of an Int at least.
pub(super) fn negate(number: Expr) -> Expr {
    let ty = match number.ty {
        Type::UnsignedByte | Type::Short | Type::Null => Type::Int,
        ty => ty,
    };
    Expr::new(Kind::Negate(Box::new(cast(number, ty))), ty)
}

/// The type that a CAST makes, and how a message calls it.
const fn target_type(target: TargetType) -> (Type, &'static str) {
    match target {
        TargetType::SmallInt => (Type::Short, "SMALLINT"),
        TargetType::Integer => (Type::Int, "INTEGER"),
        TargetType::BigInt => (Type::Long, "BIGINT"),
        TargetType::Real => (Type::Float, "REAL"),
        TargetType::DoublePrecision => (Type::Double, "DOUBLE PRECISION"),
        TargetType::Char => (Type::Text, "CHAR"),
        TargetType::VarChar => (Type::Text, "VARCHAR"),
        TargetType::Timestamp => (Type::Timestamp, "TIMESTAMP"),
        TargetType::Boolean => (Type::Boolean, "BOOLEAN"),
        TargetType::Point => (Type::Point, "POINT"),
        TargetType::Circle => (Type::Circle, "CIRCLE"),
        TargetType::Polygon => (Type::Polygon, "POLYGON"),
        TargetType::Region => (Type::Region, "REGION"),
    }
}
